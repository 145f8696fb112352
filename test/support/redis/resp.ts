/** Where the value that begins at `from` ends; undefined where it is not there in full. RESP2 and RESP3. */
function endOfValue(text: string, from: number): number | undefined {
  const lineEnd = text.indexOf('\r\n', from);
  if (lineEnd < 0) return undefined;
  const after = lineEnd + 2;
  const size = Number(text.slice(from + 1, lineEnd));
  const type = text[from] as string;
  if ('$=!'.includes(type)) {
    const end = size < 0 ? after : after + size + 2;
    return end <= text.length ? end : undefined;
  }
  if ('*~>%|'.includes(type)) return endOfValues(text, after, '%|'.includes(type) ? 2 * size : size);
  return after;
}

function endOfValues(text: string, from: number, count: number): number | undefined {
  let at: number | undefined = from;
  for (let n = 0; n < count && at !== undefined; n++) at = endOfValue(text, at);
  return at;
}

/** Splits what comes in pieces into whole values. Bytes are latin1 characters. */
export class RespReader {
  #text = '';

  /** The values that are complete with these bytes, each as it was sent. */
  read(chunk: Buffer): string[] {
    this.#text += chunk.toString('latin1');
    const values: string[] = [];
    let at = 0;
    for (let end = endOfValue(this.#text, at); end !== undefined; end = endOfValue(this.#text, at)) {
      values.push(this.#text.slice(at, end));
      at = end;
    }
    this.#text = this.#text.slice(at);
    return values;
  }
}

/** The words of a command, as clients send it: an array of bulk strings. */
export function wordsOf(command: string): string[] {
  const words: string[] = [];
  let at = command.indexOf('\r\n') + 2;
  while (at < command.length) {
    const start = command.indexOf('\r\n', at) + 2;
    const end = start + Number(command.slice(at + 1, start - 2));
    words.push(command.slice(start, end));
    at = end + 2;
  }
  return words;
}
