import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createMcpHandler, type McpServer } from '@modelcontextprotocol/server';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { onTestFinished } from 'vitest';
import type { Database } from '#store';
import { createCatalog, createToolPins, type Catalog, type Offer } from '#catalog';
import type { FetchDeps } from '../../../src/mcp/catalogue/fetch-lists.ts';
import {
  createToolCatalogue,
  type ListChange,
  type ToolCatalogue,
  type ToolCatalogueOptions,
} from '../../../src/mcp/catalogue/tool-catalogue.ts';
import { parseMessage } from '../../../src/gateway/json-rpc/message.ts';
import { META, MODERN } from '../../../src/mcp/wire/revisions.ts';
import { openEngine } from '../../support/engines.ts';
import { clock, offer, seeded } from '../../gateway/call/routing/offers.ts';

export { clock, seeded };

/** An offer of a tool service at an address. */
export function toolOffer(url: string, { provider = 'A', service = 'acme/tools', call = 0.001 } = {}): Offer {
  const made = offer({ provider, service, primitive: 'tool', pricing: { call } });
  return { ...made, endpoint: { kind: 'direct', baseUrl: url, headers: {} } };
}

/** A server of the SDK on a real socket. */
export async function serveMcp(make: () => McpServer): Promise<string> {
  const handler = createMcpHandler(make, { legacy: 'reject' });
  onTestFinished(() => handler.close());
  return listen(createServer((request, response) => void toNodeHandler(handler)(request as never, response)));
}

export interface RawServer {
  readonly url: string;
  /** Methods that were asked for, in order. */
  readonly asked: string[];
  /** Resolves when `count` requests of the method have come. */
  came(method: string, count: number): Promise<void>;
}

export type RawAnswer = string | null | Promise<string | null>;

/** A server that answers each request with a result of this JSON text; null is an unknown method. */
export async function serveRaw(
  answer: (method: string, params: Readonly<Record<string, unknown>>) => RawAnswer,
): Promise<RawServer> {
  const asked: string[] = [];
  const waiting: { readonly method: string; readonly count: number; readonly resolve: () => void }[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const { id, method, params } = JSON.parse(await bodyOf(request)) as {
        id: string;
        method: string;
        params: Record<string, unknown>;
      };
      asked.push(method);
      for (const { method: of, count, resolve } of waiting)
        if (asked.filter((one) => one === of).length >= count) resolve();
      const text = method === 'server/discover' ? DISCOVERED : await answer(method, params);
      const of = text === null ? '"error":{"code":-32601,"message":"unknown"}' : `"result":${text}`;
      response.setHeader('content-type', 'application/json').end(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},${of}}`);
    })();
  });
  return {
    url: await listen(server),
    asked,
    came: (method, count) =>
      new Promise((resolve) => {
        if (asked.filter((one) => one === method).length >= count) resolve();
        else waiting.push({ method, count, resolve });
      }),
  };
}

const DISCOVERED = JSON.stringify({
  supportedVersions: [MODERN],
  capabilities: { tools: {}, resources: {}, prompts: {} },
  resultType: 'complete',
});

async function listen(server: ReturnType<typeof createServer>): Promise<string> {
  // A client that was busy for seconds would write to a connection that is being closed.
  server.keepAliveTimeout = 120_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

/** Asks a modern server over HTTP, and cuts the result out of its answer as it stands there. */
async function ask(
  of: Offer,
  method: string,
  params: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<string | null> {
  if (of.endpoint.kind !== 'direct') throw new Error('no address');
  const response = await fetch(of.endpoint.baseUrl, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': MODERN,
      'mcp-method': method,
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 'g',
      method,
      params: { ...params, _meta: { [META.version]: MODERN, [META.capabilities]: {} } },
    }),
    signal,
  });
  const body = await response.text();
  const message = parseMessage(body.startsWith('{') ? body : (/^data: (.*)$/m.exec(body)?.[1] ?? ''));
  if (message?.kind !== 'response') throw new Error(`no answer: ${body.slice(0, 100)}`);
  if (message.error?.code === -32601) return null;
  const result = message.members.get('result');
  if (!result) throw new Error(message.error?.message ?? 'no result');
  return message.text.slice(result.start, result.end);
}

export const overHttp: FetchDeps = {
  async facts(of, signal) {
    const text = (await ask(of, 'server/discover', {}, signal)) ?? '{}';
    const { capabilities = {} } = JSON.parse(text) as { capabilities?: Record<string, unknown> };
    return { era: 'modern', revision: MODERN, bare: false, text, capabilities };
  },
  list: (of, method, cursor, signal) => ask(of, method, cursor === null ? {} : { cursor }, signal),
};

export interface CatalogueWorld {
  readonly catalog: Catalog;
  readonly catalogue: ToolCatalogue;
  readonly database: Database;
  readonly now: ReturnType<typeof clock>;
  readonly errors: Error[];
  /** Resolves with the next change of a service. */
  changed(service?: string): Promise<ListChange>;
  /** Resolves when so many errors were told. */
  failed(count: number): Promise<void>;
}

/** A catalogue over a real database that asks real servers. */
export async function startCatalogue(
  offers: readonly Offer[] = [],
  options: Partial<ToolCatalogueOptions> = {},
): Promise<CatalogueWorld> {
  const { database, dispose } = await openEngine('sqlite');
  const catalog = createCatalog();
  const now = clock();
  const errors: Error[] = [];
  let onFailed = () => {};
  const catalogue = createToolCatalogue({
    ...overHttp,
    catalog,
    pins: createToolPins(database, { now }),
    now,
    elapsed: now,
    random: seeded(1),
    onError(error) {
      errors.push(error);
      onFailed();
    },
    tickMs: 5,
    ...options,
  });
  onTestFinished(async () => {
    catalogue.close();
    await dispose();
  });
  catalog.replace('test', offers);
  await catalogue.settled();
  return {
    catalog,
    catalogue,
    database,
    now,
    errors,
    changed: (service) =>
      new Promise((resolve) => {
        const end = catalogue.onChanged((change) => {
          if (service !== undefined && change.service !== service) return;
          end();
          resolve(change);
        });
      }),
    failed: (count) =>
      new Promise((resolve) => {
        onFailed = () => void (errors.length >= count && resolve());
        onFailed();
      }),
  };
}

/** JSON text of a list of tools. */
export const toolsText = (tools: readonly unknown[], nextCursor?: string) => JSON.stringify({ tools, nextCursor });
