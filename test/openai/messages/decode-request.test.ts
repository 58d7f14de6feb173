import { expect, test } from 'vitest';
import { createCheck } from '#http';
import { GatewayError } from '#errors';
import { chatSchema, type ChatBody } from '../../../src/openai/chat/chat-schema.ts';
import { decodeRequest } from '../../../src/openai/messages/decode-request.ts';
import { type MessagesBody, messagesSchema } from '../../../src/openai/messages/schema.ts';
import { wireRequest } from '../translated/support/wire-request.ts';
import fc from 'fast-check';

// Requests of the Messages API as chat requests.

const translate = (body: Partial<MessagesBody>, bridged = false) =>
  decodeRequest(
    { model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'x' }], ...body },
    wireRequest(bridged ? 'a2a/m' : 'm'),
  );

test('servers of this gateway are called by it, others are refused', () => {
  const of = (url: string) => ({
    mcp_servers: [{ type: 'url', name: 's', url }],
    tools: [{ type: 'mcp_toolset', mcp_server_name: 's' }],
  });
  expect(translate(of('https://gateway.example/mcp/demo/tools')).body.tools).toEqual([
    { type: 'mcp', service: 'demo/tools' },
  ]);
  expect(() => translate(of('https://elsewhere.example/mcp/x'))).toThrow(/only tools of its own services/);
});

test('a toolset says which tools are called', () => {
  const of = (more: object) => ({
    mcp_servers: [{ type: 'url', name: 's', url: 'https://gateway.example/mcp/kit' }],
    tools: [{ type: 'mcp_toolset', mcp_server_name: 's', ...more }],
  });
  const configs = { a: { enabled: true }, b: { enabled: false }, c: null };
  const kit = { type: 'mcp', service: 'kit' };
  expect(translate(of({ configs })).body.tools).toEqual([{ ...kit, disallowed_tools: ['b'] }]);
  expect(translate(of({ configs, default_config: { enabled: false } })).body.tools).toEqual([
    { ...kit, allowed_tools: ['a'] },
  ]);
});

test('a server without a toolset has its own configuration, as in the first beta', () => {
  const of = (url: string, tool_configuration?: object) => ({
    mcp_servers: [{ type: 'url', name: 's', url, tool_configuration }],
  });
  const kit = 'https://gateway.example/mcp/kit';
  expect(translate(of(kit)).body.tools).toEqual([{ type: 'mcp', service: 'kit' }]);
  expect(translate(of(kit, { enabled: true, allowed_tools: ['a'] })).body.tools).toEqual([
    { type: 'mcp', service: 'kit', allowed_tools: ['a'] },
  ]);
  expect(translate(of(kit, { enabled: false })).body.tools ?? []).toEqual([]);
  expect(() => translate(of(kit, { allowed_tools: 'a' }))).toThrow(
    /mcp_servers\[0\]\.tool_configuration\.allowed_tools must be an array/,
  );
  expect(() => translate(of('https://elsewhere.example/mcp/x'))).toThrow(/only tools of its own services/);
});

test('an agent gets no tools of the client, and is told so', () => {
  const { body, dropped } = translate(
    { tools: [{ name: 'f', input_schema: {} }], tool_choice: { type: 'auto' } },
    true,
  );
  expect([body.tools, body['tool_choice'], dropped]).toEqual([undefined, undefined, ['tools']]);
});

const block = fc.oneof(
  fc.record({ type: fc.constant('text'), text: fc.string() }),
  fc.record({ type: fc.constant('tool_use'), id: fc.string(), name: fc.string(), input: fc.object() }),
  fc.record({ type: fc.constant('tool_result'), tool_use_id: fc.string(), content: fc.anything() }),
  fc.record({
    type: fc.constantFrom('image', 'document'),
    source: fc.record(
      {
        type: fc.constantFrom('base64', 'url', 'text', 'file'),
        media_type: fc.constantFrom('image/png', 'x'),
        data: fc.string(),
        url: fc.constantFrom('https://a.example/b', 'ftp://x'),
      },
      { requiredKeys: [] },
    ),
  }),
  fc.record(
    { type: fc.string(), content: fc.anything(), text: fc.anything(), input: fc.anything(), name: fc.anything() },
    { requiredKeys: ['type'] },
  ),
);
const fuzzed = fc.record(
  {
    model: fc.constant('m'),
    max_tokens: fc.constant(5),
    messages: fc.array(
      fc.record({
        role: fc.constantFrom('user', 'assistant', 'system'),
        content: fc.oneof(fc.string(), fc.array(block, { maxLength: 4 })),
      }),
      { minLength: 1, maxLength: 4 },
    ),
    system: fc.oneof(fc.string(), fc.array(block, { maxLength: 2 })),
    tools: fc.array(
      fc.oneof(
        fc.record({ name: fc.string({ minLength: 1 }), input_schema: fc.anything() }, { requiredKeys: ['name'] }),
        fc.record({
          type: fc.constantFrom('bash_20250124', 'mcp', 'web_search_1', 'mcp_toolset'),
          service: fc.anything(),
        }),
      ),
    ),
    tool_choice: fc.record({ type: fc.constantFrom('auto', 'any', 'tool', 'none'), name: fc.string() }),
    thinking: fc.record({
      type: fc.constantFrom('enabled', 'adaptive', 'disabled'),
      budget_tokens: fc.constantFrom(1, 2000),
    }),
    output_config: fc.record({ effort: fc.anything(), format: fc.anything() }, { requiredKeys: [] }),
    metadata: fc.record({ user_id: fc.anything() }),
  },
  { requiredKeys: ['model', 'max_tokens', 'messages'] },
);
const checkOurs = createCheck<MessagesBody>(messagesSchema(100));
const checkChat = createCheck<ChatBody>(chatSchema(100));

test('whatever is accepted is a request that the chat wire accepts', () => {
  fc.assert(
    fc.property(fuzzed, (asked) => {
      let body: ChatBody;
      try {
        ({ body } = decodeRequest(checkOurs(asked), wireRequest()));
      } catch (error) {
        expect(error).toBeInstanceOf(GatewayError);
        return;
      }
      checkChat(body);
    }),
    { numRuns: process.env['TOLLGATE_DEEP'] === '1' ? 100_000 : 600 },
  );
});
