import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type Charge, ENDINGS } from '../../src/gateway/call/endings.ts';

// docs/reference/endings.md shows the table by which calls are charged.

const WORDS: Readonly<Record<Charge, string>> = {
  usage: 'its usage',
  measure: 'what came, measured',
  input: 'the input, measured',
  flag: '0, and a flag ¹',
  nothing: '0',
};

test('the table of endings is the one in docs/reference/endings.md', () => {
  const rows = Object.values(ENDINGS).map(({ ending, cause, own, dialledIn }) => {
    const charges = [own.reported, own.unreported, dialledIn.reported, dialledIn.unreported];
    return `| ${[ending, cause ?? 'nobody', ...charges.map((charge) => WORDS[charge])].join(' | ')} |`;
  });
  const page = readFileSync(new URL('../../docs/reference/endings.md', import.meta.url), 'utf8');
  const shown = page.split('\n').filter((line) => rows.includes(line));
  expect(shown).toEqual(rows);
  const table = page.slice(page.indexOf('| the call is |'), page.indexOf('¹ Chat,'));
  expect(table.trim().split('\n').slice(2)).toEqual(rows);
});
