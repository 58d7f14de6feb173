import { expect, test } from 'vitest';
import { beginAnswer } from '../../../web/src/pages/playground/calls/answer.ts';
import { reduceChunk } from '../../../web/src/pages/playground/calls/take-chunk.ts';
import { splitParts } from '../../../web/src/pages/playground/parts/split-parts.ts';
import { atThisLoad } from '../../support/at-this-load.ts';

const PNG = 'data:image/png;base64,iVBORw0KGgo=';

test('each piece of a tool or an agent is the part that it was', () => {
  expect(
    splitParts([
      'Two words',
      ' and more',
      '\n\n```json\n{\n  "a": 1\n}\n```',
      `\n\n![a picture](${PNG})`,
      '\n\n[report.pdf](data:application/pdf;base64,JVBERg==)',
      '\n\n[site](https://example.com/)',
      '\n\nthe end',
    ]),
  ).toEqual([
    { kind: 'text', text: 'Two words and more' },
    { kind: 'data', value: { a: 1 } },
    { kind: 'image', name: 'a picture', url: PNG },
    { kind: 'file', name: 'report.pdf', mediaType: 'application/pdf', base64: 'JVBERg==' },
    { kind: 'link', name: 'site', url: 'https://example.com/' },
    { kind: 'text', text: 'the end' },
  ]);
});

test.each([
  ['a block that is no JSON', '```json\n{oops\n```', 'text'],
  ['a picture that is markup', '![x](data:image/svg+xml;base64,PHN2Zy8+)', 'file'],
  ['a page', '[x](data:text/html;base64,PGI+)', 'file'],
  ['a script', '[x](javascript:alert(1))', 'text'],
  ['another scheme', '[x](vbscript:x)', 'link'],
  ['a link inside a sentence', 'see [x](https://example.com/) there', 'text'],
])('%s is %s', (_what, piece, kind) => {
  expect(splitParts([piece])[0]!.kind).toBe(kind);
});

test('a text that only looks like a link takes no time', () => {
  const begun = performance.now();
  splitParts([`[${'\\'.repeat(200_000)})`, `![${'['.repeat(200_000)})`, `[a](${'('.repeat(200_000)})`]);
  expect(performance.now() - begun).toBeLessThan(atThisLoad(1_000));
});

test('an agent that writes word by word gives one text, and a file counts as no text', () => {
  const chunk = (content: string) => ({ choices: [{ delta: { content } }] });
  let answer = beginAnswer();
  for (const word of ['one ', 'two ', 'three']) answer = reduceChunk(answer, chunk(word), true);
  answer = reduceChunk(answer, chunk(`\n\n![dot](${PNG})`), true);
  answer = reduceChunk(answer, chunk('\n\nthe end'), true);
  expect(answer.pieces).toEqual(['one two three', `\n\n![dot](${PNG})`, '\n\nthe end']);
  expect(answer.length).toBe('one two three'.length + '\n\nthe end'.length);
});

test.each([[{}], [{ choices: [] }], [{ choices: [{ delta: { content: 7, images: [{ image_url: { url: 8 } }] } }] }]])(
  'a chunk that is not as it should be adds nothing',
  (chunk) => {
    const answer = reduceChunk(beginAnswer(), chunk, true);
    expect([answer.pieces, answer.images, answer.fault]).toEqual([[], [], null]);
  },
);
