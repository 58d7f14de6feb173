import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { agentBlock } from '../../support/a2a-agent/index.ts';
import { startSpine, UNHURRIED, type SpineOptions } from '../../support/spine.ts';
import { until } from '../../support/tunnel-spine.ts';
import { createTalk } from '../contract/client-calls.ts';
import { startQuickAgent } from './support/quick-agent.ts';

const PAUSE = {
  name: 'test/longest-pause',
  text: 'SELECT look_ms FROM tasks WHERE look_ms > 50000 AND claimed_until = 0',
};
const IDLE = { name: 'test/not-looked-at', text: 'SELECT task_id FROM tasks WHERE claimed_until = 0' };

test('a task that is looked at once a minute by now is looked at soon after a restart: its end may have been told while nobody was there', async () => {
  const agent = await startQuickAgent();
  onTestFinished(() => agent.close());
  const dataDir = await mkdtemp(join(tmpdir(), 'tollgate-looks-'));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const clock = { ahead: 0 };
  const options: SpineOptions = {
    dataDir,
    now: () => Date.now() + clock.ahead,
    toml: `${UNHURRIED}\n${agentBlock({ name: 'quick/agent', endpoint: agent.url })}`,
  };
  const first = await startSpine(options);
  const talk = createTalk(
    { url: `${first.origin}/a2a/quick/agent`, headers: { authorization: `Bearer ${first.key}` } },
    '1.0',
    'JSONRPC',
  );
  const { id } = await talk.task('work', { immediately: true });
  let polls = 0;
  agent.onPoll = () => void (polls += 1);
  for (let seen = 0; (await first.app.database.query(PAUSE)).length === 0; seen = polls) {
    clock.ahead += 60_000;
    await until(() => polls > seen);
    await until(async () => (await first.app.database.query(IDLE)).length === 1);
  }
  const before = await first.balance();
  await first.stop();
  agent.end(id, 'completed');
  const second = await startSpine(options);
  onTestFinished(() => second.stop());
  await second.quiet();
  expect(await second.balance()).toEqual({ available: before.available, locked: 0n });
  expect(await second.faults()).toEqual([]);
});
