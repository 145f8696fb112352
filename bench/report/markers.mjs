/** The text with new content between each `<!-- bench:name -->` and its `<!-- /bench:name -->`. Throws if one does not end. */
export function fill(text, contentOf) {
  const begins = text.match(/<!-- bench:\w+ -->/g) ?? [];
  let filled = text;
  for (const begin of begins) {
    const [name] = begin.match(/(?<=:)\w+/);
    const end = `<!-- /bench:${name} -->`;
    const from = filled.indexOf(begin) + begin.length;
    const to = filled.indexOf(end, from);
    if (to === -1) throw new Error(`Expected ${end} after ${begin}`);
    filled = `${filled.slice(0, from)}\n\n${contentOf(name)}\n\n${filled.slice(to)}`;
  }
  return filled;
}
