import { Client } from 'pg';
import { expect, inject, onTestFinished, test } from 'vitest';
import { loadStatements, openDatabase } from '#store';
import { freshDatabase } from '../../../support/fresh-database.ts';
import { joined, startNode } from './registry-world.ts';
import { atThisLoad } from '../../../support/at-this-load.ts';

const SQL = loadStatements(import.meta.url, '../../../../src/gateway/network/registry/sql/nodes.sql', ['pgBumpClock']);

test('a gateway that freezes in the middle of a change does not hold the others up for long', async () => {
  const fresh = await freshDatabase(inject('postgresUrl'));
  const database = await openDatabase({ url: fresh.url, dataDir: '' });
  const frozen = new Client({ connectionString: fresh.url });
  onTestFinished(async () => {
    await database.close();
    await fresh.drop();
  });
  const node = await startNode(database);
  frozen.on('error', () => {});
  await frozen.connect();
  await frozen.query('BEGIN');
  await frozen.query(SQL.pgBumpClock.text);
  // Nothing more is heard of it, and its row stays locked.
  const begun = performance.now();
  await joined(node, 'p');
  expect(performance.now() - begun).toBeGreaterThan(1_000);
  expect(performance.now() - begun).toBeLessThan(atThisLoad(6_000));
  expect(node.errors).toEqual([]);
});
