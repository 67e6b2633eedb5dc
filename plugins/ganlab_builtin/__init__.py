"""The plugins that come with ganlab, one package for each kind of component. They use only public names of ganlab."""
