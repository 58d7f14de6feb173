import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

interface RpcCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** What a node answers: a result, an error of its own, an HTTP status without JSON, or nothing ever. */
export type NodeAnswer =
  | { readonly result: unknown }
  | { readonly error: { readonly code: number; readonly message: string; readonly data?: string } }
  | { readonly status: number }
  | 'silence';

export interface ChainNode {
  readonly url: string;
  /** Methods that were called, in order. */
  readonly calls: RpcCall[];
  stop(): Promise<void>;
}

export const ACCEPTED: NodeAnswer = { result: '0x01' };
export const REFUSED: NodeAnswer = { result: '0x00' };

/**
 * A node of a chain on a real socket: JSON-RPC over HTTP, with the code of every address and what its contracts answer.
 */
export async function startChainNode(of: {
  readonly code?: string;
  readonly answer: (call: RpcCall) => NodeAnswer;
}): Promise<ChainNode> {
  const calls: RpcCall[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString()) as RpcCall & { id: number };
      const call = { method, params };
      calls.push(call);
      const answer = method === 'eth_getCode' && of.code !== undefined ? { result: of.code } : of.answer(call);
      if (answer === 'silence') return;
      if ('status' in answer)
        return void response.writeHead(answer.status, { 'content-type': 'text/html' }).end('<h1>no</h1>');
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  onTestFinished(stop);
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, calls, stop };
}
