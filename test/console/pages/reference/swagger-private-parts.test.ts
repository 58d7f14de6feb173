import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { checkedWith } from '../../../support/checked-with.ts';

checkedWith('@fastify/swagger', '9.9.3');

const folder = (name: string) => new URL(`../../../../node_modules/@fastify/${name}/`, import.meta.url);

test('@fastify/swagger imports the packages that are loaded before it', () => {
  const { dependencies } = JSON.parse(readFileSync(new URL('package.json', folder('swagger')), 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  expect(Object.keys(dependencies)).toEqual(expect.arrayContaining(['yaml', 'json-schema-resolver']));
});
