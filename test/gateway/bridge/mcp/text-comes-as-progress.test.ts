import { describe, expect, test } from 'vitest';
import { connectV1, connectV2, textOf } from '../../../mcp/aggregate/aggregate-spine.ts';
import { startBridgeWorld } from './bridge-world.ts';
import { startLineServer } from './line-target.ts';

interface Progress {
  readonly progress: number;
  readonly message?: string | undefined;
}

/** An agent and a model that go on speaking when they are told to. */
async function world() {
  const goOn = Promise.withResolvers<void>();
  const { url, asked } = await startLineServer(() => [
    { progress: 'thinking' },
    { text: 'It will ' },
    { wait: goOn.promise },
    { text: 'rain.' },
    { end: {} },
  ]);
  const { origin } = await startBridgeWorld({ agents: { weather: { url } }, models: { gpt: { url } } });
  return { origin, asked, goOn: goOn.resolve };
}

const CLIENTS = { 'a session': connectV1, 'the modern revision': connectV2 } as const;
const CALLS = [
  ['/mcp/a2a/weather', { name: 'send_message', arguments: { message: 'tomorrow?' } }],
  ['/mcp/model/gpt', { name: 'chat', arguments: { prompt: 'tomorrow?' } }],
  ['/mcp', { name: 'ask_agent', arguments: { agent: 'weather', message: 'tomorrow?' } }],
  ['/mcp', { name: 'call_tool', arguments: { name: 'ask_model', arguments: { model: 'gpt', prompt: 'tomorrow?' } } }],
] as const;

describe.each(Object.entries(CLIENTS))('with %s', (name, connect) => {
  test.each(CALLS)('at %s, %o tells what is said while it is said', async (path, call) => {
    const { origin, asked, goOn } = await world();
    const client = await connect(`${origin}${path}`, 'alice');
    const heard: Progress[] = [];
    const options = {
      onprogress(progress: Progress) {
        heard.push(progress);
        // The rest is said when the first half has been heard.
        if (progress.message === 'It will ') goOn();
      },
    };
    // The second argument of the one SDK is the third of the other.
    const result = await client.callTool(call, (name === 'a session' ? undefined : options) as never, options);
    expect(heard.map(({ message }) => message)).toEqual(['thinking', 'It will ', 'rain.']);
    expect(heard.map(({ progress }) => progress)).toEqual([1, 2, 3]);
    expect(textOf(result)).toBe('It will rain.');
    expect(asked).toMatchObject([{ stream: true }]);
  });

  test('nobody who did not ask for progress gets any', async () => {
    const { origin, asked, goOn } = await world();
    goOn();
    const client = await connect(`${origin}/mcp/a2a/weather`, 'alice');
    expect(textOf(await client.callTool({ name: 'send_message', arguments: { message: 'tomorrow?' } }))).toBe(
      'It will rain.',
    );
    expect(asked).toMatchObject([{ stream: false }]);
  });
});
