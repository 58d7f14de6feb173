import { expect, onTestFinished, test } from 'vitest';
import { parseMessage, type ResponseMessage } from '../../../src/gateway/json-rpc/message.ts';
import { startMcpFixture } from '../../support/mcp-fixture.ts';
import { startBridge, type BridgeWorld } from './bridge-world.ts';
import { startRawServer, toolCall } from './raw-server.ts';

const ALL = { elicitation: {}, sampling: { tools: {} }, roots: {} };

interface Question {
  readonly id: string;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** Answers what comes as a client that posts its responses. */
const answering =
  (world: BridgeWorld, session: { readonly id: string }, result: (question: Question) => string) => (event: string) => {
    const question = JSON.parse(event) as Question;
    const posted = parseMessage(
      `{"jsonrpc":"2.0","id":${JSON.stringify(question.id)},"result":${result(question)}}`,
    ) as ResponseMessage;
    if (!world.clientRequests.resolve(session.id, posted)) throw new Error('nobody waits for this answer');
  };

const ANSWERS: Readonly<Record<string, string>> = {
  'elicitation/create': '{"action":"accept","content":{"name":"Ada","color":"blue","ok":true}}',
  'sampling/createMessage': '{"role":"assistant","model":"m","content":{"type":"text","text":"Paris"}}',
  'roots/list': '{"roots":[{"uri":"file:///r"}]}',
};

test.each([
  ['test_input_required_result_elicitation', 'Hello, Ada!', 1],
  ['test_input_required_result_multi_round', 'Ada likes blue', 2],
  ['test_input_required_result_multiple_inputs', 'All three answers came', 3],
  ['test_input_required_result_request_state', 'state-ok', 1],
  ['test_input_required_result_sampling', 'The client answered', 1],
  ['test_input_required_result_list_roots', 'file:///r', 1],
])('%s: the client answers what the server needs, in one call that is charged once', async (tool, words, questions) => {
  const fixture = await startMcpFixture({ eras: 'modern' });
  onTestFinished(() => fixture.close());
  const world = await startBridge(fixture.url);
  const session = world.session({ capabilities: ALL });
  const { events, text, charged } = await world.ask(session, toolCall('"mine"', tool), {
    onEvent: answering(world, session, ({ method }) => ANSWERS[method]!),
  });
  expect(JSON.parse(text!)).toMatchObject({
    id: 'mine',
    result: { content: [{ text: expect.stringContaining(words) as string }] },
  });
  expect(events).toHaveLength(questions);
  expect(charged).toBe(1_000n);
  expect(world.endings).toEqual([`${tool}: complete, 1000`]);
  expect(world.clientRequests.count).toBe(0);
  expect(await world.faults()).toEqual([]);
});

test('a prompt that needs input gets it, and costs nothing', async () => {
  const fixture = await startMcpFixture({ eras: 'modern' });
  onTestFinished(() => fixture.close());
  const world = await startBridge(fixture.url);
  const session = world.session({ capabilities: ALL });
  const request = { id: 1, method: 'prompts/get', params: { name: 'test_input_required_result_prompt' } };
  const { text } = await world.ask(session, request, {
    onEvent: answering(world, session, () => '{"action":"accept","content":{"context":"c1"}}'),
  });
  expect(text).toContain('Use this context: c1');
  expect(world.endings).toEqual([]);
  expect(await world.faults()).toEqual([]);
});

test('questions, answers and states pass byte by byte, and each round has an id of its own', async () => {
  const params =
    '{"message":"q", "requestedSchema":{"type":"object","properties":{"n":{"default":1.0}}},"later":[12345678901234567890]}';
  const server = await startRawServer(({ params: { requestState } }, reply) => {
    if (requestState === undefined)
      return reply.result(
        `{"inputRequests":{"a\\u0062": {"method":"elicitation/create","params":${params},"z":1e2}},"requestState":"s\\u0031\\/","resultType":"input_required"}`,
      );
    if (requestState === 's1/') return reply.result('{"resultType":"input_required","requestState":"s2"}');
    return reply.result('{"resultType":"complete","content":[{"type":"text","text":"","x":1.0}]}');
  });
  const world = await startBridge(server.url);
  const session = world.session({ capabilities: ALL });
  const answer = '{"action":"accept","content":{"n":1.0,"big":12345678901234567890}, "unknown":{"b":1,"a":2}}';
  const { events, text } = await world.ask(session, toolCall('1', 'tool', ', "arguments":{"x":1.0}'), {
    onEvent: answering(world, session, () => answer),
  });
  const { id } = JSON.parse(events[0]!) as Question;
  expect(events).toEqual([`{"method":"elicitation/create","params":${params},"z":1e2,"jsonrpc":"2.0","id":"${id}"}`]);
  expect(text).toBe('{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"","x":1.0}]}}');
  const [first, second, third] = server.got.map((got) => got.text.replace(JSON.stringify(got.id), 'ID'));
  expect(second).toBe(first!.replace(/\}\}$/, `,"inputResponses":{"ab":${answer}},"requestState":"s\\u0031\\/"}}`));
  expect(third).toBe(first!.replace(/\}\}$/, ',"requestState":"s2"}}'));
  expect(new Set(server.got.map((got) => got.id)).size).toBe(3);
  expect(await world.faults()).toEqual([]);
});

test('a URL that the user shall open has the id that legacy clients know it by', async () => {
  const server = await startRawServer(({ params: { inputResponses } }, reply) =>
    reply.result(
      inputResponses === undefined
        ? '{"resultType":"input_required","inputRequests":{"u":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://a.example/"}}}}'
        : '{"content":[]}',
    ),
  );
  const world = await startBridge(server.url);
  const session = world.session({ capabilities: { elicitation: { url: {} } } });
  const { events } = await world.ask(session, toolCall('1'), {
    onEvent: answering(world, session, () => '{"action":"accept"}'),
  });
  const { id, params } = JSON.parse(events[0]!) as Question;
  expect(params).toEqual({ mode: 'url', message: 'm', url: 'https://a.example/', elicitationId: id });
  expect(await world.faults()).toEqual([]);
});
