import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { findFreePort } from '../../support/free-port.ts';
import { findLocalProviders } from '../../../src/program/cli/gateway/local-providers.ts';

test('Ollama is found although the start keeps this process busy for longer than the probe may take', async () => {
  const ollama = createServer((_, response) => response.end('{"models":[]}'));
  ollama.listen(0, '127.0.0.1');
  await once(ollama, 'listening');
  onTestFinished(() => {
    ollama.closeAllConnections();
    ollama.close();
  });
  const found = findLocalProviders({ OLLAMA_HOST: `127.0.0.1:${(ollama.address() as AddressInfo).port}` });
  for (const begun = performance.now(); performance.now() - begun < 1_500;);
  expect((await found).map(({ name }) => name)).toEqual(['Ollama']);
});

test('an address that never answers is given up', async () => {
  const mute = createServer(() => {});
  mute.listen(0, '127.0.0.1');
  await once(mute, 'listening');
  onTestFinished(() => {
    mute.closeAllConnections();
    mute.close();
  });
  expect(await findLocalProviders({ OLLAMA_HOST: `127.0.0.1:${(mute.address() as AddressInfo).port}` })).toEqual([]);
});

type Answers = (path: string, body: Record<string, unknown> | null) => { status?: number; json: unknown };

/** A provider on a real socket. Resolves with its host and port, and the paths that it was asked. */
async function provider(answer: Answers) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const text = (await Array.fromAsync(request as AsyncIterable<Buffer>)).join('');
      asked.push(`${request.method} ${request.url}`);
      const { status = 200, json } = answer(request.url!, text === '' ? null : JSON.parse(text));
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json));
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

async function servicesOf(env: Record<string, string>) {
  const [found] = await findLocalProviders({ OLLAMA_HOST: '127.0.0.1:9', ...env });
  return (await found!.services()).map(({ service }) => service);
}

test('a model of Ollama has the context, the kinds of content and the names that Ollama gives it', async () => {
  const shown: Record<string, unknown> = {
    'llama3.2:latest': {
      capabilities: ['completion', 'tools', 'vision'],
      model_info: { 'general.architecture': 'llama', 'llama.context_length': 131_072 },
    },
    'nomic-embed-text:latest': {
      capabilities: ['embedding'],
      model_info: { 'nomic-bert.context_length': 2048 },
    },
    'all-minilm:22m': { details: { family: 'bert' }, model_info: { 'bert.context_length': 512 } },
    'small:1b': { parameters: 'stop "x"\nnum_ctx 4096', model_info: { 'llama.context_length': 131_072 } },
  };
  const names = [...Object.keys(shown), 'silent:1b'];
  const { host } = await provider((path, body) =>
    path === '/api/tags'
      ? { json: { models: names.map((name) => ({ name })) } }
      : { status: shown[String(body?.['model'])] ? 200 : 500, json: shown[String(body?.['model'])] ?? {} },
  );
  const services = await servicesOf({ OLLAMA_HOST: host });
  const facts = services.map((service) => {
    if (service.primitive !== 'model') throw new Error('it is no model');
    const { upstreamModel, contextLength, inputModalities, outputModalities } = service.model;
    return [service.name, upstreamModel, contextLength, inputModalities.join('+'), outputModalities.join('+')];
  });
  expect(facts).toEqual([
    ['ollama/llama3.2', 'llama3.2:latest', 131_072, 'text+image', 'text'],
    ['ollama/llama3.2:latest', 'llama3.2:latest', 131_072, 'text+image', 'text'],
    ['ollama/nomic-embed-text', 'nomic-embed-text:latest', 2048, 'text', 'embeddings'],
    ['ollama/nomic-embed-text:latest', 'nomic-embed-text:latest', 2048, 'text', 'embeddings'],
    ['ollama/all-minilm:22m', 'all-minilm:22m', 512, 'text', 'embeddings'],
    ['ollama/small:1b', 'small:1b', 4096, 'text', 'text'],
    ['ollama/silent:1b', 'silent:1b', 8192, 'text', 'text'],
  ]);
});

test('OpenAI has images beside the models of its list prices', async () => {
  const listed = ['gpt-5-mini', 'text-embedding-3-small', 'gpt-image-1-mini', 'whisper-1'];
  const { host, asked } = await provider(() => ({ json: { data: listed.map((id) => ({ id })) } }));
  expect(await servicesOf({ OPENAI_API_KEY: 'sk-x', OPENAI_BASE_URL: `http://${host}/v1/` })).toMatchObject([
    { primitive: 'image', name: 'openai/gpt-image-1-mini', media: { upstreamModel: 'gpt-image-1-mini' } },
  ]);
  expect(asked).toEqual(['GET /v1/models']);
});

test('a provider is found by its key, unless that is the key of a gateway', async () => {
  const env = {
    OLLAMA_HOST: '127.0.0.1:9',
    ANTHROPIC_API_KEY: 'sk-ant-x',
    OPENAI_API_KEY: 'svc-sk-x',
    GOOGLE_API_KEY: 'k',
  };
  expect((await findLocalProviders(env)).map(({ use, origin: found, flag }) => [use, found, flag])).toEqual([
    ['anthropic', 'ANTHROPIC_API_KEY is set', '--with anthropic'],
    ['google', 'GOOGLE_API_KEY is set', '--with google'],
  ]);
});

test('a dead address is named, with the cause and how to change it', async () => {
  const base = `http://127.0.0.1:${await findFreePort()}/v1`;
  await expect(servicesOf({ OPENAI_API_KEY: 'sk-x', OPENAI_BASE_URL: base })).rejects.toThrow(
    `Its models could not be listed at ${base}/models: connect ECONNREFUSED ${new URL(base).host}. OPENAI_BASE_URL says where it is`,
  );
});

test('an answer that is no list names the address', async () => {
  const { host } = await provider(() => ({ json: { hello: 'you' } }));
  await expect(servicesOf({ OPENAI_API_KEY: 'sk-x', OPENAI_BASE_URL: `http://${host}/v1` })).rejects.toThrow(
    new RegExp(`^${host} did not answer with a list of models at http://${host}/v1/models`),
  );
});
