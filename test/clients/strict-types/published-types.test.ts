import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { png } from '../../media/support/image-provider.ts';
import { startGateway, type Gateway } from '../../support/gateway.ts';

// Real answers of a gateway with the demo's services, checked by the types that OpenAI and Anthropic publish. Clients
// in strict languages are generated from the same source, and fail where a member is missing that these require.

const CHECKOUT = resolve(import.meta.dirname, '../../..');
const CHAT = { model: 'demo/chat', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 40 };
const TOOL = {
  name: 'add',
  description: 'Adds numbers',
  parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] },
};
const ASKED = 'Use the tool add with a = 1 and b = 2';

let gateway: Gateway;
let folder: string;
/** Lines of the program that the compiler reads. */
const lines: string[] = [];
beforeAll(async () => {
  gateway = await startGateway({ command: 'start' });
  // Inside of the checkout, where the compiler finds the packages.
  mkdirSync(join(CHECKOUT, '.cache'), { recursive: true });
  folder = mkdtempSync(join(CHECKOUT, '.cache', 'strict-types-'));
});
afterAll(async () => {
  await gateway.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function call(path: string, body?: object | FormData): Promise<Response> {
  const isForm = body instanceof FormData;
  const response = await fetch(gateway.baseUrl + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${gateway.apiKey}`,
      ...(path.includes('messages') ? { 'anthropic-version': '2023-06-01' } : {}),
      ...(body === undefined || isForm ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response;
}

/** Notes that this value has to be of the type. `as const` keeps each text and number as it is. */
function note(name: string, type: string, value: unknown): void {
  const number = lines.length;
  const text = JSON.stringify(value);
  lines.push(
    `const value${number} = ${text} as const; // ${name}\nexport const checked${number}: Whole<${type}> = value${number};`,
  );
}

const noteAnswer = async (path: string, type: string, body?: object | FormData) =>
  note(path, type, await (await call(path, body)).json());

/** Notes each event of a stream whose members differ from those of the events before it. */
async function noteStream(path: string, type: string, body: object): Promise<void> {
  const text = await (await call(path, { ...body, stream: true })).text();
  const events = text
    .split('\n')
    .flatMap((line) =>
      line.startsWith('data: ') && line !== 'data: [DONE]' ? [JSON.parse(line.slice(6)) as object] : [],
    );
  expect(events.length, path).toBeGreaterThan(2);
  const shape = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.slice(0, 1).map(shape)
      : typeof value === 'object' && value !== null
        ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, name === 'type' ? one : shape(one)]))
        : typeof value;
  // The SDK itself takes a `ping` out before its types apply.
  const told = events.filter((event) => !('type' in event && event.type === 'ping'));
  const seen = new Map(told.map((event) => [JSON.stringify(shape(event)), event]));
  for (const event of seen.values()) note(path, type, event);
}

test('every answer has the published type', async () => {
  const messages = [{ role: 'user', content: ASKED }];
  await noteAnswer('/v1/chat/completions', 'OpenAI.ChatCompletion', CHAT);
  await noteStream('/v1/chat/completions', 'OpenAI.ChatCompletionChunk', CHAT);
  const withTool = { ...CHAT, messages, tools: [{ type: 'function', function: TOOL }], tool_choice: 'required' };
  await noteAnswer('/v1/chat/completions', 'OpenAI.ChatCompletion', withTool);
  await noteStream('/v1/chat/completions', 'OpenAI.ChatCompletionChunk', withTool);
  await noteAnswer('/v1/completions', 'OpenAI.Completion', { model: 'demo/chat', prompt: 'Hello', max_tokens: 20 });

  const asked = { model: 'demo/chat', input: 'Hello' };
  const toolOfResponses = { type: 'function', strict: false, ...TOOL };
  await noteAnswer('/v1/responses', 'Reply', asked);
  await noteStream('/v1/responses', 'ReplyEvent', asked);
  await noteAnswer('/v1/responses', 'Reply', { ...asked, input: ASKED, tools: [toolOfResponses] });
  await noteAnswer('/v1/responses/input_tokens', 'OpenAI.Responses.InputTokenCountResponse', asked);

  await noteAnswer('/api/v1/messages', 'Anthropic.Message', CHAT);
  await noteStream('/api/v1/messages', 'Anthropic.RawMessageStreamEvent', CHAT);
  const { parameters, ...tool } = TOOL;
  const toolOfMessages = { ...CHAT, messages, tools: [{ ...tool, input_schema: parameters }] };
  await noteAnswer('/api/v1/messages', 'Anthropic.Message', toolOfMessages);
  await noteAnswer('/api/v1/messages/count_tokens', 'Anthropic.MessageTokensCount', {
    model: 'demo/chat',
    messages,
  });

  for (const format of ['float', 'base64']) {
    const body = { model: 'demo/embedding', input: ['Hello'], encoding_format: format };
    const type = format === 'float' ? 'OpenAI.CreateEmbeddingResponse' : 'EmbeddingsAsText';
    await noteAnswer('/v1/embeddings', type, body);
  }

  await noteAnswer('/v1/models', '{ object: "list"; data: OpenAI.Model[] }');
  await noteAnswer('/v1/models/demo/chat', 'OpenAI.Model');

  const picture = { model: 'demo/image', prompt: 'A bridge', size: '64x64' };
  await noteAnswer('/v1/images/generations', 'OpenAI.ImagesResponse', picture);
  const form = new FormData();
  form.set('model', 'demo/image');
  form.set('prompt', 'Lower the bar');
  form.set('image', new Blob([new Uint8Array(png(64, 64))], { type: 'image/png' }), 'toll.png');
  await noteAnswer('/v1/images/edits', 'OpenAI.ImagesResponse', form);

  const film = { model: 'demo/video', prompt: 'A gate', seconds: '2' };
  const video = (await (await call('/v1/videos', film)).json()) as { readonly id: string };
  note('/v1/videos', 'OpenAI.Videos.Video', video);
  await expect
    .poll(async () => ((await (await call(`/v1/videos/${video.id}`)).json()) as { status: string }).status)
    .toBe('completed');
  await noteAnswer(`/v1/videos/${video.id}`, 'OpenAI.Videos.Video');
  await noteAnswer('/v1/videos', 'VideoList');

  const file = join(folder, 'recorded.ts');
  writeFileSync(file, `${HEAD}${lines.join('\n')}\n`);
  const { stdout } = spawnSync(
    join(CHECKOUT, 'node_modules/.bin/tsc'),
    ['--noEmit', '--strict', '--skipLibCheck', '--ignoreConfig', '--target', 'esnext', '--module', 'nodenext', file],
    { cwd: folder, encoding: 'utf8' },
  );
  expect(stdout).toBe('');
});

/**
 * What the SDKs add to an answer themselves is left out. `usage` of a response under way is null, as OpenAI's own API
 * sends it, which its types do not say.
 */
const HEAD = `
import type { Anthropic } from '@anthropic-ai/sdk';
import type OpenAI from 'openai';

type Whole<T> = T extends (infer One)[]
  ? readonly Whole<One>[]
  : T extends object
    ? { readonly [Name in keyof T]: Whole<T[Name]> }
    : T;
type Reply = Omit<OpenAI.Responses.Response, 'output_text' | 'usage'> & { usage: OpenAI.Responses.ResponseUsage | null };
type WithReply<T> = T extends { response: OpenAI.Responses.Response } ? Omit<T, 'response'> & { response: Reply } : T;
type ReplyEvent = WithReply<OpenAI.Responses.ResponseStreamEvent>;
type EmbeddingsAsText = Omit<OpenAI.CreateEmbeddingResponse, 'data'> & {
  data: (Omit<OpenAI.Embedding, 'embedding'> & { embedding: string })[];
};
type VideoList = { object: 'list'; data: OpenAI.Videos.Video[]; first_id: string | null; last_id: string | null; has_more: boolean };
`;
