import { expect, test } from 'vitest';
import { readAddress } from '../../../src/program/cli/discovery.ts';

const read = (text: string): URL => readAddress(text, '--url', 'admin key goes in --admin-key');

test.each([
  'http://user:geheim@gateway.example',
  'http://:geheim@gateway.example',
  'ftp://user:geheim@gateway.example',
  'http://user:ge heim@gateway example',
  'user:geheim@gateway.example',
])('the password of %s is refused and not repeated', (text) => {
  expect(() => read(text)).toThrow(
    /^--url contains a user or a password\.\nRemove them\. The admin key goes in --admin-key\.$/,
  );
});

test.each(['gateway', 'gateway.example:8402', 'ftp://gateway.example', 'http:', 'http://', 'http:gateway', ''])(
  '%o is not the address of a gateway',
  (text) => {
    expect(() => read(text)).toThrow(
      `--url is not the address of a gateway: ${text}\nGive it as http://127.0.0.1:8402`,
    );
  },
);

test('an @ in a path is no user', () => {
  expect(read('https://gateway.example/a@b').pathname).toBe('/a@b');
});
