// The filter: words that a row has, words with a minus that it lacks, and comparisons as `lr>0.001` or `status=failed`.
const COMPARISON = /^([^<>=!]+)(>=|<=|!=|=|>|<)(.*)$/;

/**
 * What a text asks of rows, `{accepts, problems}`. A row has a `text` and `values(name)`; `names` can be compared, and
 * `others` are meant only where none of these is.
 */
export function query(text, names, others = []) {
  const [problems, all] = [[], [...names, ...others]];
  const words = text.toLowerCase().replace(/\s*(>=|<=|!=|=|>|<)\s*/g, '$1').split(/\s+/).filter(Boolean);
  const tests = words.map((word) => {
    const [, name, sign, wanted] = COMPARISON.exec(word) ?? [];
    if (/^[a-z]{2,4}$/.test(word) && !all.some((one) => one.includes(word)) && resolve(word, all).length) return () => true; // half of `lr>1`
    if (!sign) return /^-[a-z_]/.test(word) ? (row) => !row.text.includes(word.slice(1)) : (row) => row.text.includes(word);
    const meant = [names, others].map((some) => resolve(name, some)).find((found) => found.length) ?? [];
    if (!meant.length) problems.push(`No setting or shown metric of these runs is called ${name}. Choose another metric under Metric first.`);
    if (!meant.length || wanted === '') return () => true;
    return (row) => meant.flatMap((one) => row.values(one)).some((value) => holds(value, sign, wanted));
  });
  return { problems, accepts: (row) => tests.every((test) => test(row)) };
}

/** The names that a short one means: in full, the end, the initials (`lr`) or the beginning of the last part. */
export function resolve(short, names) {
  const last = (name) => name.split(/[./]/).at(-1);
  const ways = [
    (name) => name === short,
    (name) => name.endsWith(`.${short}`) || name.endsWith(`/${short}`),
    (name) => last(name).split('_').map((word) => word[0]).join('') === short,
    (name) => last(name).startsWith(short),
  ];
  for (const way of ways) {
    const found = names.filter((name) => way(name.toLowerCase()));
    if (found.length) return found;
  }
  return [];
}

function holds(value, sign, wanted) {
  if (value === undefined || value === null) return false;
  const [a, b] = [Number(value), Number(wanted)];
  const numbers = typeof value === 'number' && !Number.isNaN(b);
  if (sign === '=') return numbers ? a === b : String(value).toLowerCase().includes(wanted);
  if (sign === '!=') return !holds(value, '=', wanted);
  return numbers && { '>': a > b, '<': a < b, '>=': a >= b, '<=': a <= b }[sign];
}
