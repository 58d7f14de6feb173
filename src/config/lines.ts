/**
 * The line of a key path (`server.port`, `models[1].pricing.prompt`) or of its nearest parent. null if neither is
 * found.
 */
export type LineOf = (path: string) => number | null;

/**
 * Finds the lines of keys in TOML text, because the parser gives values without positions. It only recognises headers,
 * `key =` at the start of a line, and multi-line strings, which it skips. It takes linear time.
 */
export function indexLines(text: string): LineOf {
  const lines = new Map<string, number>();
  const tables = new Map<string, number>();
  let table = '';
  let quote: string | null = null;

  const remember = (path: string, line: number) => {
    if (!lines.has(path)) lines.set(path, line);
  };
  /** The path of a header, with the index of the newest table for each array in it. */
  const place = (segments: readonly string[]): string => {
    let path = '';
    for (const segment of segments) {
      path = path ? `${path}.${segment}` : segment;
      const count = tables.get(path);
      if (count !== undefined) path = `${path}[${count - 1}]`;
    }
    return path;
  };

  text.split('\n').forEach((line, index) => {
    const number = index + 1;
    if (quote !== null) {
      if (line.includes(quote)) quote = null;
      return;
    }
    const start = line.length - line.trimStart().length;
    if (line[start] === '[') {
      const array = line[start + 1] === '[';
      const { segments, end } = readKey(line, start + (array ? 2 : 1));
      if (segments.length === 0 || line[end] !== ']') return;
      if (array) {
        const path = [place(segments.slice(0, -1)), segments.at(-1)].filter(Boolean).join('.');
        tables.set(path, (tables.get(path) ?? 0) + 1);
        remember(path, number);
      }
      table = place(segments);
      remember(table, number);
      return;
    }
    const { segments, end } = readKey(line, start);
    if (segments.length === 0 || line[end] !== '=') return;
    remember([table, ...segments].filter(Boolean).join('.'), number);
    for (const marks of ['"""', "'''"]) {
      const open = line.indexOf(marks, end);
      if (open !== -1 && !line.includes(marks, open + 3)) quote = marks;
    }
  });

  return (path) => {
    for (let at = path; at !== ''; at = at.slice(0, Math.max(0, at.lastIndexOf('.'), at.lastIndexOf('[')))) {
      const line = lines.get(at);
      if (line !== undefined) return line;
    }
    return null;
  };
}

/**
 * The dotted key at `from`, and the index of the first character after it and the following spaces. No segments if
 * there is no key.
 */
function readKey(line: string, from: number): { readonly segments: readonly string[]; readonly end: number } {
  const segments: string[] = [];
  let at = from;
  const skipSpaces = () => {
    while (line[at] === ' ' || line[at] === '\t') at++;
  };
  for (;;) {
    skipSpaces();
    const quote = line[at];
    const begin = at;
    if (quote === '"' || quote === "'") {
      const close = line.indexOf(quote, at + 1);
      if (close === -1) return { segments: [], end: at };
      segments.push(line.slice(at + 1, close));
      at = close + 1;
    } else {
      while (at < line.length && /[\w-]/.test(line[at]!)) at++;
      if (at === begin) return { segments: [], end: at };
      segments.push(line.slice(begin, at));
    }
    skipSpaces();
    if (line[at] !== '.') return { segments, end: at };
    at++;
  }
}
