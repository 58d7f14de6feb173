import { expect, test } from 'vitest';
import { undeliveredEvents } from '../../../src/a2a/tasks/listen-to-task.ts';
import type { RawExchange } from '../../support/a2a-agent/index.ts';
import { UNHURRIED } from '../../support/spine.ts';
import type { Event } from '../contract/shapes.ts';
import { LEGACY_RPC, RPC, useCallsWorld } from './support/calls-world.ts';
import { serveRaw, statusEvent, taskResult, writeEvent } from './support/raw-served.ts';

const calls = useCallsWorld(UNHURRIED);

const artifactEvent = (taskId: string, text: string) => ({
  artifactUpdate: {
    taskId,
    contextId: `context-of-${taskId}`,
    artifact: { artifactId: 'a', parts: [{ text }] },
    append: true,
  },
});
const artifacts = (...texts: readonly string[]) => [{ artifactId: 'a', parts: texts.map((text) => ({ text })) }];
const textsOf = (events: readonly Event[]) =>
  events.map((event) =>
    event.type === 'artifact' ? event.artifact.parts.map(({ value }) => value).join('') : event.type,
  );

for (const [name, wire, parts] of [
  ['1.0', RPC, ['one ', 'two ']],
  ['0.3', LEGACY_RPC, ['one two ']],
] as const)
  test(`a client of ${name} that joins while the agent writes gets what the shown task lacks, and nothing twice`, async () => {
    const id = `late-${name}`;
    const subscribed = Promise.withResolvers<RawExchange>();
    const asked = Promise.withResolvers<RawExchange>();
    const { url } = await serveRaw(calls.world, (exchange) => {
      const { method, params } = exchange.request;
      if (method === 'SendMessage') return exchange.result(taskResult(id, 'WORKING'));
      if (method === 'SubscribeToTask') {
        writeEvent(exchange, taskResult(id, 'WORKING'));
        return subscribed.resolve(exchange);
      }
      // The gateway's own looks ask for no history.
      if ((params as { historyLength?: number }).historyLength === 0)
        return exchange.result(taskResult(id, 'WORKING').task);
      return asked.resolve(exchange);
    });
    const talk = calls.talk(url);
    await talk.task('begin', { immediately: true });
    const first = await talk.subscribe(id);
    await first.next();
    const stream = await subscribed.promise;
    writeEvent(stream, artifactEvent(id, 'one '));
    await first.next();
    const joining = calls.talk(url, wire).subscribe(id);
    const poll = await asked.promise;
    // The agent reads the task for the late client between these two. Its answer takes longer than both events.
    for (const text of ['two ', 'three ']) {
      writeEvent(stream, artifactEvent(id, text));
      await first.next();
    }
    poll.result(taskResult(id, 'WORKING', { artifacts: artifacts(...parts) }).task);
    const late = await joining;
    expect(await late.next()).toMatchObject({ type: 'task', id, state: 'working' });
    writeEvent(stream, artifactEvent(id, 'four '));
    writeEvent(stream, statusEvent(id, 'COMPLETED'));
    stream.response.end();
    expect(textsOf(await late.rest())).toEqual(['three ', 'four ', 'status']);
    expect(textsOf(await first.rest())).toEqual(['four ', 'status']);
    await calls.world.spine.quiet();
  });

/** Waiting updates of one artifact, written as `+text` for one that appends and as `text` for one that replaces. */
const update = (said: string) => {
  const append = said.startsWith('+');
  const parts = [{ text: append ? said.slice(1) : said }];
  return { artifactUpdate: { taskId: 't', artifact: { artifactId: 'a', parts }, append } };
};

test.each([
  // Nothing is shown yet.
  [null, ['+a', '+b'], '11'],
  ['', ['+a', '+b'], '11'],
  // All, some or none of the appended parts are shown.
  ['xab', ['+a', '+b'], '00'],
  ['xa', ['+a', '+b'], '01'],
  ['x', ['+a', '+b'], '11'],
  ['aab', ['+a', '+a', '+b'], '000'],
  ['xabab', ['+ab', '+abc'], '01'],
  // An update that replaces the artifact makes those before it needless only if it is shown.
  ['new', ['+old', 'new', '+er'], '001'],
  ['newer', ['+old', 'new', '+er'], '000'],
  ['xold', ['+old', 'new', '+er'], '011'],
  ['x', ['+old', 'new', '+er'], '111'],
  // An update without parts is repeated.
  ['xa', ['+a', '+'], '01'],
])('of an artifact %j, the updates %j are sent where %s has a 1', (shown, said, sent) => {
  const task = { id: 't', ...(shown === null ? {} : { artifacts: artifacts(shown) }) };
  const wanted = undeliveredEvents('1.0', task, [statusEvent('t', 'WORKING'), ...said.map(update)]);
  expect(wanted.map(Number).join('')).toBe(`1${sent}`);
});

test('parts of other kinds are compared as they are', () => {
  const of = (n: number) => ({ data: { n } });
  const appended = (n: number) => ({
    artifactUpdate: { taskId: 't', artifact: { artifactId: 'a', parts: [of(n)] }, append: true },
  });
  const task = { id: 't', artifacts: [{ artifactId: 'a', parts: [of(1), of(2)] }] };
  expect(undeliveredEvents('1.0', task, [appended(2), appended(3)])).toEqual([false, true]);
  expect(undeliveredEvents('1.0', task, [appended(3)])).toEqual([true]);
});
