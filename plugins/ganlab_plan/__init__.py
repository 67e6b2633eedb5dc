"""The application `ganlab plan`: does an experiment fit another machine, and how long will it take there?"""
