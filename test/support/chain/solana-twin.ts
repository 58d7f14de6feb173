import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ataOf, mintBytes, TOKEN_PROGRAM, tokenAccountBytes, tokenAccountOf, USDC } from './solana-accounts.ts';
import { SvmChain } from './solana-svm.ts';
import { METHODS, RpcRefusal, type TwinView } from './solana-twin-methods.ts';

/** The faults of the node. Changes take effect with the next request. */
export interface TwinFaults {
  /** This many transactions are accepted but never executed. */
  dropNext: number;
  /** Transactions are executed this many slots after they were sent, if they are still valid then. */
  landAfter: number;
  /** `sendTransaction` answers with an error and does nothing. */
  refuseSends: boolean;
  /** `sendTransaction` works, but its answer is lost. */
  cutSendAnswers: boolean;
  /** The node is this many slots behind the others: it accepts and forwards transactions, but its state is old. */
  staleBy: number;
  /** `getHealth` says that the node is behind. */
  unhealthy: boolean;
  /** Transactions older than this slot are missing from the history. The node says so in its answer. */
  forgetBefore: number;
  /** Falsifies answers: its return value replaces the correct result. */
  lie: ((method: string, honest: unknown, params: readonly unknown[]) => unknown) | null;
}

export interface SolanaTwin {
  readonly url: string;
  readonly chain: SvmChain;
  readonly faults: TwinFaults;
  /** Number of requests by method. */
  readonly asked: Map<string, number>;
  advance(slots: number): void;
  /** Lets slots pass until all executed transactions are final. */
  finalize(): void;
  /** Lets slots pass until no current blockhash is valid in the finalized state. */
  expire(): void;
  fundSol(address: string, lamports?: bigint): void;
  /** Adds this amount to a wallet's token account, visible at every commitment level. */
  fundUsdc(owner: string, microUsd: bigint): void;
  close(): Promise<void>;
}

export interface TwinOptions {
  /** Slots until an executed transaction is confirmed. Default 0. */
  readonly confirmAfter?: number;
  /** Slots until it is final. Default 32. */
  readonly finalizeAfter?: number;
  /** Lets one slot pass every so many milliseconds. Default: slots pass only on request. */
  readonly slotMs?: number;
  readonly port?: number;
}

/**
 * A Solana devnet in one process: litesvm (the real virtual machine with the real SPL programs) behind JSON-RPC on
 * loopback, with the USDC of devnet. It shows the effects and costs of transactions, their expiry, and a node that is
 * late, forgetful or wrong. It can't show forks (executed transactions stay), real commitment levels (they depend only
 * on age), leaders, congestion, lookup tables or durable nonces. There is only one node.
 */
export async function startSolanaTwin(options: TwinOptions = {}): Promise<SolanaTwin> {
  const chain = new SvmChain(options.confirmAfter ?? 0, options.finalizeAfter ?? 32);
  chain.setAccount(USDC, {
    lamports: chain.rent(82),
    data: mintBytes(TOKEN_PROGRAM, 1_000_000_000_000_000n, 6),
    programAddress: TOKEN_PROGRAM,
    executable: false,
  });
  const faults: TwinFaults = {
    dropNext: 0,
    landAfter: 0,
    refuseSends: false,
    cutSendAnswers: false,
    staleBy: 0,
    unhealthy: false,
    forgetBefore: 0,
    lie: null,
  };
  const asked = new Map<string, number>();
  const view: TwinView = { chain, faults };

  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const {
      id,
      method,
      params = [],
    } = JSON.parse(Buffer.concat(chunks).toString('utf8')) as { id: unknown; method: string; params?: unknown[] };
    asked.set(method, (asked.get(method) ?? 0) + 1);
    let reply: Record<string, unknown>;
    try {
      const known = METHODS[method];
      if (known === undefined) throw new RpcRefusal(-32601, `Method not found: ${method}`);
      const honest = known(view, params);
      if (method === 'sendTransaction' && faults.cutSendAnswers) {
        response.destroy();
        return;
      }
      reply = { result: faults.lie === null ? honest : faults.lie(method, honest, params) };
    } catch (error) {
      if (!(error instanceof RpcRefusal)) throw error;
      reply = {
        error: { code: error.code, message: error.message, ...(error.data === undefined ? {} : { data: error.data }) },
      };
    }
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ jsonrpc: '2.0', id, ...reply }));
  }
  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');
  const clock = options.slotMs === undefined ? null : setInterval(() => chain.advance(1), options.slotMs);
  clock?.unref();

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    chain,
    faults,
    asked,
    advance: (slots) => chain.advance(slots),
    finalize: () => chain.advance(chain.finalizeAfter),
    expire: () => chain.advance(151 + chain.finalizeAfter),
    fundSol(address, lamports = 1_000_000_000n) {
      const held = chain.account(address)?.lamports ?? 0n;
      chain.setAccount(address, {
        lamports: held + lamports,
        data: new Uint8Array(),
        programAddress: '11111111111111111111111111111111',
        executable: false,
      });
    },
    fundUsdc(owner, microUsd) {
      const held = chain.account(ataOf(owner));
      const amount = (held === null ? 0n : tokenAccountOf(held.data).amount) + microUsd;
      chain.setAccount(ataOf(owner), {
        lamports: chain.rent(165),
        data: tokenAccountBytes(USDC, owner, amount),
        programAddress: TOKEN_PROGRAM,
        executable: false,
      });
    },
    async close() {
      if (clock !== null) clearInterval(clock);
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
