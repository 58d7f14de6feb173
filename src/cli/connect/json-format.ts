import * as jsonc from 'jsonc-parser';
import type { Format } from './settings.ts';

const TABS = /^\t/m;

/** JSON with comments and trailing commas, which editors and agents allow. */
export const JSON_FORMAT: Format = {
  language: 'json',
  parse(text) {
    if (text.trim() === '') return {};
    const errors: jsonc.ParseError[] = [];
    const value: unknown = jsonc.parse(text, errors, { allowTrailingComma: true });
    const [error] = errors;
    if (error)
      throw new Error(
        `line ${text.slice(0, error.offset).split('\n').length}: ${jsonc.printParseErrorCode(error.error)}`,
      );
    return value;
  },
  change(text, settings) {
    const formattingOptions = {
      insertSpaces: !TABS.test(text),
      tabSize: 2,
      eol: text.includes('\r\n') ? '\r\n' : '\n',
    };
    let changed = text.trim() === '' ? '{}\n' : text;
    for (const { at, value } of settings)
      changed = jsonc.applyEdits(changed, jsonc.modify(changed, at as string[], value, { formattingOptions }));
    return changed;
  },
};
