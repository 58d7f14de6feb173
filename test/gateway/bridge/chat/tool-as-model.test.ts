import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startMcpFixture, type McpFixture } from '../../../support/mcp-fixture.ts';
import { streamed, whole } from './support/chat-shapes.ts';
import { toolToml, UNHURRIED } from './support/toml.ts';
import { startWorld, type World } from './support/world.ts';

// A tool that is asked through the chat route as if it were a model, at the tool's own price.

let fixture: McpFixture;
let world: World;
beforeAll(async () => {
  fixture = await startMcpFixture();
  world = await startWorld({ toml: toolToml(fixture.url) + UNHURRIED });
});
afterAll(async () => {
  await world.stop();
  await fixture.close();
});
afterEach(async () => {
  expect(await world.faults()).toEqual([]);
  expect(world.errors).toEqual([]);
});

const ask = (tool: string, content: unknown = '{}', more: object = {}) => ({
  model: `mcp/kit/${tool}`,
  messages: [{ role: 'user', content }],
  ...more,
});

async function paid(run: () => Promise<void>): Promise<bigint> {
  const before = await world.balance();
  await run();
  await world.quiet();
  return before.available - (await world.balance()).available;
}

test.each([false, true])(
  'its arguments are the JSON that it is told, its result is the answer; streamed: %s',
  async (stream) => {
    const cost = await paid(async () => {
      const response = await world.chat(
        ask('json_schema_2020_12_tool', '{"name":"Ada","email":"a@example.com"}', { stream }),
      );
      expect(response.status).toBe(200);
      const id = response.headers.get('x-generation-id');
      const { content, usage } = stream
        ? await streamed(response).then((all) => ({ content: all.content, usage: all.last.usage! }))
        : await whole(response).then((all) => ({ content: all.choices[0]!.message.content, usage: all.usage }));
      expect(JSON.parse(content!)).toEqual({ name: 'Ada', email: 'a@example.com' });
      expect(usage).toMatchObject({ prompt_tokens: 0, completion_tokens: 0, cost: 0.001 });
      expect(JSON.parse((await world.lock(id)).lockDetail)).toMatchObject({
        primitive: 'tool',
        service: 'kit',
        operation: 'json_schema_2020_12_tool',
      });
    });
    expect(cost).toBe(1_000n);
  },
);

test('an earlier request is not made again by a later text', async () => {
  const messages = [
    { role: 'user', content: '{"name":"Ada"}' },
    { role: 'assistant', content: 'done' },
    { role: 'user', content: 'and again' },
  ];
  expect(
    await paid(async () =>
      expect((await world.chat({ ...ask('json_schema_2020_12_tool'), messages })).status).toBe(422),
    ),
  ).toBe(0n);
});

test('an image is shown as one', async () => {
  const { choices } = await whole(await world.chat(ask('test_image_content')));
  expect(choices[0]!.message.content).toMatch(/^!\[image\]\(data:image\/png;base64,[A-Za-z0-9+/=]+\)$/);
});

test('progress is told where clients do not look', async () => {
  const { content, comments } = await streamed(
    await world.chat(ask('test_tool_with_progress', '{}', { stream: true })),
  );
  expect(content).toBe('Done');
  expect(comments).toEqual(['0/100', '50/100', '100/100']);
});

test('its failure costs nothing', async () => {
  const cost = await paid(async () => {
    const { choices, error } = await whole(await world.chat(ask('test_error_handling')));
    expect(choices[0]!.finish_reason).toBe('error');
    expect(error!.message).toContain('This tool intentionally returns an error for testing');
  });
  expect(cost).toBe(0n);
});

test('an unknown tool is not found', async () => {
  const response = await world.chat(ask('nothing_such'));
  expect(response.status).toBe(404);
  expect((await whole(response)).error).toMatchObject({ type: 'invalid_model', param: 'model' });
});
