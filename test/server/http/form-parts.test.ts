import { expect, test } from 'vitest';
import { formParts } from '../../../src/server/http/form.ts';

const TYPE = 'multipart/form-data; boundary=edge';
const form = (...parts: readonly string[]) =>
  Buffer.from(parts.map((part) => `--edge\r\n${part}\r\n`).join('') + '--edge--\r\n');
const field = (name: string, value: string, more = '') =>
  `Content-Disposition: form-data; name="${name}"${more}\r\n\r\n${value}`;

test('fields and files are told apart, and empty ones are there', () => {
  const parts = formParts(
    form(field('a', 'one'), field('b', ''), field('c', '\r\n--edg\r\n', '; filename="c.png"')),
    TYPE,
  );
  expect(parts.map(({ name, isFile, content }) => [name, isFile, content.toString()])).toEqual([
    ['a', false, 'one'],
    ['b', false, ''],
    ['c', true, '\r\n--edg\r\n'],
  ]);
});

test('names without quotes are read, as .NET writes them', () => {
  const parts = formParts(
    form(
      'Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=model\r\n\r\nm',
      'Content-Disposition: form-data; name=image; filename=a.png\r\n\r\npng',
    ),
    TYPE,
  );
  expect(parts.map(({ name, isFile, content }) => [name, isFile, content.toString()])).toEqual([
    ['model', false, 'm'],
    ['image', true, 'png'],
  ]);
});

test('it reads what the platform writes', async () => {
  const written = new FormData();
  written.append('prompt', 'Ein Schlagbaum, früh');
  written.append(
    'input_reference',
    new File([new Uint8Array([0, 13, 10, 45, 45])], 'a "b".png', { type: 'image/png' }),
  );
  const encoded = new Response(written);
  const parts = formParts(Buffer.from(await encoded.arrayBuffer()), encoded.headers.get('content-type')!);
  expect(parts.map(({ name, isFile, content }) => [name, isFile, [...content]])).toEqual([
    ['prompt', false, [...Buffer.from('Ein Schlagbaum, früh')]],
    ['input_reference', true, [0, 13, 10, 45, 45]],
  ]);
});

test.each([
  ['no boundary', form(field('a', 'b')), 'multipart/form-data'],
  ['another boundary', form(field('a', 'b')), 'multipart/form-data; boundary=other'],
  ['no end', form(field('a', 'b')).subarray(0, 60), TYPE],
  ['no name', form('Content-Disposition: form-data\r\n\r\nvalue'), TYPE],
  ['a head without an end', form('Content-Disposition: form-data; name="a"'), TYPE],
  ['too many fields', form(...Array.from({ length: 129 }, (_, at) => field(`f${at}`, ''))), TYPE],
])('%s is refused', (_what, bytes, type) => {
  expect(() => formParts(bytes, type)).toThrow(expect.objectContaining({ code: 'invalid_request' }) as Error);
});
