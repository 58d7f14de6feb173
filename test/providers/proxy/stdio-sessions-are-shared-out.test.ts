import { expect, it } from 'vitest';
import { BOTH, callOf, INITIALIZE, readEvents, stdioTool } from './stdio-tool.ts';

// What a tool has of sessions is shared out between its consumers: nobody locks another one out, in use or not.

const tool = stdioTool({ sessionsMax: 4 });

const begin = async (consumer: string): Promise<Readonly<Record<string, string>> | number> => {
  const { status, headers } = await tool.post(INITIALIZE, { accept: BOTH, 'x-tollgate-consumer': consumer });
  return status === 200 ? { accept: BOTH, 'mcp-session-id': headers['mcp-session-id'] as string } : status;
};
const opened = async (consumer: string, count: number) => {
  const sessions: Readonly<Record<string, string>>[] = [];
  for (let index = 0; index < count; index += 1) {
    const session = await begin(consumer);
    if (typeof session === 'number') throw new Error(`refused with ${session}`);
    sessions.push(session);
  }
  return sessions;
};
const statusOf = async (session: Readonly<Record<string, string>>) => (await tool.post(callOf('echo'), session)).status;

it('the longest unused of who has the most makes room for another', async () => {
  await tool.start();
  const crowd = await opened('crowd', 4);
  // The first is used, so that the second is the longest unused.
  expect(await statusOf(crowd[0]!)).toBe(200);
  const [other] = await opened('other', 1);
  expect(await statusOf(crowd[1]!)).toBe(404);
  expect(await Promise.all([crowd[0]!, crowd[2]!, crowd[3]!, other!].map(statusOf))).toEqual([200, 200, 200, 200]);
});

it('who has the most makes room for himself', async () => {
  await tool.start();
  const [other] = await opened('other', 1);
  const crowd = await opened('crowd', 20);
  expect(await statusOf(other!)).toBe(200);
  expect(await Promise.all(crowd.slice(-3).map(statusOf))).toEqual([200, 200, 200]);
  expect(await Promise.all(crowd.slice(0, -3).map(statusOf))).toEqual(Array(17).fill(404));
});

it('what is in use makes room only where its consumer has more than his share', async () => {
  await tool.start();
  for (const session of await opened('crowd', 4)) await readEvents(tool.open(null, session)).status;
  // Nobody takes from others what he has himself.
  expect(await begin('crowd')).toBe(503);
  for (const session of await opened('other', 2)) await readEvents(tool.open(null, session)).status;
  expect(await begin('other')).toBe(503);
  expect(await begin('crowd')).toBe(503);
  // A third has less than both, and half of a share each is more than a third.
  expect(await begin('third')).toBe(503);
});
