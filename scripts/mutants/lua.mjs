const operators = [
  [/ == /g, ' ~= '],
  [/ ~= /g, ' == '],
  [/ < /g, ' <= '],
  [/ <= /g, ' < '],
  [/ > /g, ' >= '],
  [/ >= /g, ' > '],
  [/ and /g, ' or '],
  [/ or /g, ' and '],
  [/ \+ /g, ' - '],
  [/ - /g, ' + '],
  [/\bnot /g, ''],
  [/\btrue\b/g, 'false'],
  [/\bfalse\b/g, 'true'],
  [/(?<=\bif )(?!.*\belse).*(?= then\b)/g, 'true'],
  [/(?<=\bif )(?!.*\belse).*(?= then\b)/g, 'false'],
];

/** A call or an assignment that is a line of its own. */
const statement =
  /^(?!\s*(?:local|return|if|for|while|else|elseif|end|function|repeat|until)\b)[\w.[\]' ]+(\(.*\)| = .*[^,{(])$/;

/** All changes of a Lua source, as replacements of text. What is written in one style can be found line by line. */
export function mutationsOfLua(source) {
  const found = [];
  let at = 0;
  for (const line of source.split('\n')) {
    const code = blanked(line);
    if (code.trim() !== '') {
      for (const [pattern, becomes] of operators) {
        for (const match of code.matchAll(pattern)) {
          found.push({ from: at + match.index, to: at + match.index + match[0].length, becomes });
        }
      }
      if (statement.test(code)) {
        const indent = line.length - line.trimStart().length;
        found.push({ from: at + indent, to: at + line.length, becomes: '' });
      }
    }
    at += line.length + 1;
  }
  return found;
}

/** The line with its comment and the insides of its texts blanked, so that offsets stay. */
function blanked(line) {
  let quote;
  let code = '';
  for (let i = 0; i < line.length; i += 1) {
    const char = line[i];
    if (quote === undefined && line.startsWith('--', i)) break;
    if (quote === undefined && (char === "'" || char === '"')) quote = char;
    else if (char === quote) quote = undefined;
    else if (quote !== undefined) {
      if (char === '\\') {
        code += '_';
        i += 1;
      }
      code += '_';
      continue;
    }
    code += char;
  }
  return code.trimEnd();
}
