import type { Format } from './settings.ts';

const LINE = /^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*(.*?)[ \t]*$/;

/** Lines of `NAME=value`, such as a `.env`. */
export const DOTENV_FORMAT: Format = {
  language: 'sh',
  parse(text) {
    const values: Record<string, string> = {};
    for (const line of text.split(/\r?\n/)) {
      const [, name, value] = LINE.exec(line) ?? [];
      if (name !== undefined) values[name] = unquoted(value!);
    }
    return values;
  },
  change(text, settings) {
    const lines = text === '' ? [] : text.replace(/\r?\n$/, '').split('\n');
    for (const { at, value } of settings) {
      const name = String(at[0]);
      const line = `${name}=${String(value)}`;
      const found = lines.findLastIndex((one) => LINE.exec(one.replace(/\r$/, ''))?.[1] === name);
      if (value === undefined) lines.splice(Math.max(0, found), found < 0 ? 0 : 1);
      else if (found < 0) lines.push(line);
      else lines[found] = `${/^[ \t]*export[ \t]+/.exec(lines[found]!)?.[0] ?? ''}${line}`;
    }
    return `${lines.join('\n')}\n`;
  },
};

const unquoted = (value: string): string => /^(["'])(.*)\1$/.exec(value)?.[2] ?? value;
