import { expect, test } from 'vitest';
import { findPackage } from '#config';
import { filesOfTier, isOneOf } from '../../../scripts/test-tiers.ts';
import { ROOT } from '../../architecture/source.ts';

// Before Node 25 the permission model does not know the network. The flags of Node 24 are those of this one without it.

const OWN = process.allowedNodeEnvironmentFlags;
const OLD = new Set([...OWN].filter((flag) => flag !== '--allow-net'));
const NEW = new Set([...OWN, '--allow-net']);
const target = { sdk: '@ai-sdk/openai-compatible', directory: import.meta.dirname };

test('a package is refused by a Node that cannot confine it, and the operator is told what helps', () => {
  expect(() => findPackage(target, OLD)).toThrow(
    expect.objectContaining({
      message: `names the package ${target.sdk}, which needs Node 25 or newer, and this is ${process.version}`,
      right: expect.stringContaining('apt-get install libatomic1') as unknown,
    }),
  );
  expect(findPackage(target, NEW).specifier).toBe(target.sdk);
});

test('tests that start a package are left out there, and no others', () => {
  const [old, all] = [new Set(filesOfTier('deep', ROOT, OLD)), filesOfTier('deep', ROOT, NEW)];
  const left = all.filter((file) => !old.has(file));
  expect(left.length).toBeGreaterThan(5);
  expect(left.filter((file) => !isOneOf(['test/providers/ai-sdk/*', 'test/release/*'], file))).toEqual([]);
});
