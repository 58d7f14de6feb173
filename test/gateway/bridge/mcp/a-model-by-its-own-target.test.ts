import { expect, onTestFinished, test } from 'vitest';
import { connectV1, connectV2, textOf } from '../../../mcp/aggregate/aggregate-spine.ts';
import { MODEL, startSpine } from '../../../support/spine.ts';

test('a chat model answers as a tool in both eras, as it speaks, for what its tokens cost', async () => {
  const spine = await startSpine();
  onTestFinished(() => spine.stop());
  for (const [path, call] of [
    [`/mcp/model/${MODEL}`, { name: 'chat', arguments: { prompt: 'hello', max_tokens: 50 } }],
    ['/mcp', { name: 'ask_model', arguments: { model: MODEL, prompt: 'hello', max_tokens: 50 } }],
  ] as const)
    for (const connect of [connectV1, connectV2]) {
      const before = (await spine.balance()).available;
      const client = await connect(`${spine.origin}${path}`, spine.key);
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).toContain(call.name);
      const said: (string | undefined)[] = [];
      const options = { onprogress: ({ message }: { message?: string | undefined }) => void said.push(message) };
      // The second argument of the one SDK is the third of the other.
      const result = await client.callTool(call, (connect === connectV1 ? undefined : options) as never, options);
      expect(result['isError']).toBeUndefined();
      expect(said.length).toBeGreaterThan(0);
      expect(textOf(result)).toBe(said.join(''));
      const { id } = (result['_meta'] as Record<string, { id: string }>)['tollgate/generation']!;
      const generation = await spine.generation(id);
      expect(generation).toMatchObject({ state: 'settled', model: MODEL });
      expect(BigInt(generation.cost_micro_usdc)).toBe(before - (await spine.balance()).available);
      expect(generation.cost_micro_usdc).toBeGreaterThan(0);
    }
  expect(await spine.faults()).toEqual([]);
});
