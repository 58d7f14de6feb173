import { describe, expect, test } from 'vitest';
import type { Primitive } from '#config';
import { Access, accessOf, patternsFault } from '../../../src/server/accounts/access.ts';

// [patterns, service, tool or null, allowed]
const CASES: readonly (readonly [string, string, string | null, boolean])[] = [
  ['files', 'files', null, true],
  ['files', 'files', 'read', true],
  ['files', 'files2', null, false],
  ['files', 'acme/files', null, false],
  ['files', 'files/read', null, false],
  ['files/read', 'files', 'read', true],
  ['files/read', 'files', 'write', false],
  ['files/read', 'files', 'read2', false],
  ['files/read', 'files', null, false],
  ['files/read', 'files/read', null, true],
  ['files/read', 'files/read', 'any', true],
  ['files/*', 'files', 'read', true],
  ['files/*', 'files', null, false],
  ['files/*', 'files/more', null, true],
  ['files/r*', 'files', 'read', true],
  ['files/r*', 'files', 'write', false],
  ['fi*', 'files', null, true],
  ['fi*', 'files', 'read', true],
  ['*', 'anything', 'at all', true],
  ['files -files/delete', 'files', 'delete', false],
  ['-files/delete files', 'files', 'delete', false],
  ['files -files/delete', 'files', 'read', true],
  ['files -files/delete', 'files', null, true],
  ['files -files/*', 'files', 'read', false],
  ['files -files/*', 'files', null, true],
  ['files/read -files', 'files', 'read', false],
  ['* -files', 'files', 'read', false],
  ['* -files', 'files', null, false],
  ['* -files', 'other', null, true],
  ['* -fi*', 'files', 'read', false],
  // A tool may have any name, also one with a slash.
  ['a/b/c', 'a', 'b/c', true],
  ['a/b/c', 'a/b', 'c', true],
  ['a/b/c', 'a/b/c', null, true],
  ['a/b/c', 'a/b', null, false],
];

test.each(CASES)('%s: %s, the tool %s: %s', (patterns, service, operation, allowed) => {
  const access = new Access([patterns.split(' ')]);
  expect(access.allows('tool', service, operation)).toBe(allowed);
  // What is allowed can be reached.
  if (allowed) expect(access.reaches('tool', service)).toBe(true);
});

test.each([
  ['files/read', 'files', true],
  ['files/read', 'file', false],
  ['files/read', 'files/read/more', false],
  ['files/*', 'files', true],
  ['files/r*', 'files', true],
  ['fi*', 'files', true],
  ['files/read -files/*', 'files', false],
  ['files -files/*', 'files', true],
  ['files/read -files', 'files', false],
  ['files/read -files/delete', 'files', true],
])('%s reaches %s: %s', (patterns, service, reached) => {
  expect(new Access([patterns.split(' ')]).reaches('tool', service)).toBe(reached);
});

// [patterns, kind, service, tool or null, allowed]
const KINDS: readonly (readonly [string, Primitive | null, string, string | null, boolean])[] = [
  ['tool:files/read', 'tool', 'files', 'read', true],
  ['tool:files/read', 'tool', 'files', 'write', false],
  ['tool:files/read', 'model', 'files/read', null, false],
  ['tool:files/read', 'tool', 'files/read', 'any', true],
  ['model:own/*', 'model', 'own/chat', null, true],
  ['model:own/*', 'agent', 'own/chat', null, false],
  ['model:own/*', 'tool', 'own/chat', 'read', false],
  ['agent:*', 'agent', 'own/helper', null, true],
  ['agent:*', 'image', 'own/helper', null, false],
  ['agent:* files', 'tool', 'files', 'read', true],
  ['agent:* files', 'tool', 'own/helper', 'read', false],
  ['* -tool:files/delete', 'tool', 'files', 'delete', false],
  ['* -tool:files/delete', 'tool', 'FILES', 'Delete', false],
  ['* -tool:files/delete', 'tool', 'files', 'read', true],
  ['* -tool:files/delete', 'model', 'files/delete', null, true],
  ['* -Video:*', 'video', 'own/film', null, false],
  ['* -Video:*', 'model', 'own/film', null, true],
  ['model:own/* -own/dear', 'model', 'own/dear', null, false],
  // Of a kept answer the kind is not known.
  ['model:own/*', null, 'own/chat', null, true],
  ['model:own/*', null, 'other/chat', null, false],
  ['* -model:own/*', null, 'own/chat', null, false],
];

test.each(KINDS)('%s: %s %s, the tool %s: %s', (patterns, kind, service, operation, allowed) => {
  const access = new Access([patterns.split(' ')]);
  expect(access.allows(kind, service, operation)).toBe(allowed);
  if (kind !== null && allowed) expect(access.reaches(kind, service)).toBe(true);
});

test('a kind is no name', () => {
  const access = new Access([['tool:*', 'model:own/*']]);
  expect([access.names('tool', 'files'), access.names('model', 'own/chat', null)]).toEqual([false, true]);
  expect(access.names('tool', 'own/chat')).toBe(false);
  expect(`${access}`).toBe('tool:*, model:own/*');
});

test('of a key and its member each has to allow', () => {
  const access = accessOf(['files', 'mail'], null, ['files/*', '-files/delete'])!;
  expect(access.allows('tool', 'files', 'read')).toBe(true);
  expect(access.allows('tool', 'files', 'delete')).toBe(false);
  expect(access.allows('tool', 'mail', 'send')).toBe(false);
  expect([access.reaches('tool', 'files'), access.reaches('tool', 'mail')]).toEqual([true, false]);
  expect(`${access}`).toBe('files, mail, and its member to: files/*, -files/delete');
  expect(accessOf(null, null)).toBeNull();
});

describe('a bad pattern', () => {
  test.each([
    [[''], 0, /must name a service or its tool, such as files, files\/read, files\/\*, tool:files or -files\/delete/],
    [['files', '-'], 1, /must name a service/],
    [['/read'], 0, /must name a service/],
    [['files/'], 0, /must not end in "\/"\. Write files\/\* for all tools of files$/],
    [['-files/'], 0, /Write -files\/\* for all tools of files$/],
    [['tool:'], 0, /must name a service/],
    [['-tool:-files'], 0, /must begin with one "-" at most/],
    [['*/read'], 0, /may have a "\*" only at its end/],
    [['files/**'], 0, /may have a "\*" only at its end/],
    [['--files'], 0, /must begin with one "-" at most/],
    [[' files'], 0, /must not begin or end with a space/],
    [['-files'], null, /takes away without giving anything\. Add "\*" for everything else/],
  ])('%j', (patterns, at, text) => {
    expect(patternsFault(patterns)).toEqual({ at, text: expect.stringMatching(text) as string });
  });

  test.each([
    [['files']],
    [['*', '-files/a*']],
    [['a/b:c', '-*']],
    [['files/read it']],
    [['tool:files/*', '-model:*']],
  ])('%j is none', (patterns) => {
    expect(patternsFault(patterns)).toBeNull();
  });
});
