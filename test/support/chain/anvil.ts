import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { findFreePort } from '../free-port.ts';

/** A real EVM node on loopback, owned by a test. A block is mined for each transaction, unless automining is off. */
export interface Anvil {
  readonly url: string;
  readonly port: number;
  readonly chainId: number;
  /** Makes one JSON-RPC call. Throws with the node's error message. */
  rpc<T = unknown>(method: string, params?: readonly unknown[]): Promise<T>;
  /** Mines this many blocks, one second apart. */
  mine(blocks?: number): Promise<void>;
  setAutomine(on: boolean): Promise<void>;
  /** Replaces the newest blocks with the same number of empty ones, so their transactions are undone. */
  reorg(depth: number): Promise<void>;
  /** In wei. */
  setBalance(address: string, wei: bigint): Promise<void>;
  /** Timestamp of the next block, epoch seconds. */
  setNextTime(seconds: number): Promise<void>;
  snapshot(): Promise<string>;
  revert(snapshot: string): Promise<void>;
  stop(): Promise<void>;
}

export interface AnvilOptions {
  readonly chainId?: number;
  /** A block is finalized when twice this number of blocks are on top of it. */
  readonly slotsInAnEpoch?: number;
  readonly args?: readonly string[];
}

/** Starts the binary of the npm package `@foundry-rs/anvil` and waits until it answers. */
export async function startAnvil(options: AnvilOptions = {}): Promise<Anvil> {
  const { chainId = 84_532, slotsInAnEpoch = 1, args = [] } = options;
  const port = await findFreePort();
  const child = spawn(
    anvilBinary(),
    [
      '--host',
      '127.0.0.1',
      '--port',
      `${port}`,
      '--chain-id',
      `${chainId}`,
      '--slots-in-an-epoch',
      `${slotsInAnEpoch}`,
      '--silent',
      ...args,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const ended = once(child, 'exit');
  let complaint = '';
  child.stderr.on('data', (chunk: Buffer) => {
    complaint = (complaint + chunk.toString('utf8')).slice(-2000);
  });
  // If the test run is stopped, the node is killed too.
  const orphaned = (): void => void child.kill('SIGKILL');
  process.once('exit', orphaned);
  void ended.then(() => process.off('exit', orphaned));

  const url = `http://127.0.0.1:${port}`;
  const rpc = async <T>(method: string, params: readonly unknown[] = []): Promise<T> => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    const answer = (await response.json()) as { result?: T; error?: { message: string } };
    if (answer.error) throw new Error(`${method}: ${answer.error.message}`);
    return answer.result as T;
  };
  await untilItAnswers(
    child,
    () => rpc('eth_chainId'),
    () => complaint,
  );

  return {
    url,
    port,
    chainId,
    rpc,
    mine: async (blocks = 1) => void (await rpc('anvil_mine', [`0x${blocks.toString(16)}`])),
    setAutomine: async (on) => void (await rpc('evm_setAutomine', [on])),
    reorg: async (depth) => void (await rpc('anvil_reorg', [depth, []])),
    setBalance: async (address, wei) => void (await rpc('anvil_setBalance', [address, `0x${wei.toString(16)}`])),
    setNextTime: async (seconds) => void (await rpc('evm_setNextBlockTimestamp', [seconds])),
    snapshot: () => rpc<string>('evm_snapshot'),
    revert: async (snapshot) => void (await rpc('evm_revert', [snapshot])),
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/**
 * The path of the binary in this platform's package. It is found in the same way as `@foundry-rs/anvil`'s own launcher
 * does.
 */
function anvilBinary(): string {
  const cpu = process.arch === 'x64' ? 'amd64' : process.arch;
  const name = `@foundry-rs/anvil-${process.platform}-${cpu}`;
  try {
    const launcher = createRequire(createRequire(import.meta.url).resolve('@foundry-rs/anvil/package.json'));
    return launcher.resolve(`${name}/bin/anvil${process.platform === 'win32' ? '.exe' : ''}`);
  } catch (error) {
    throw new Error(
      `The tests of EVM chains need ${name}, which is not installed: no anvil for this platform. Run npm install there, or skip these files.`,
      {
        cause: error,
      },
    );
  }
}

async function untilItAnswers(
  child: ChildProcess,
  ask: () => Promise<unknown>,
  complaint: () => string,
): Promise<void> {
  const deadline = performance.now() + 20_000;
  for (;;) {
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`anvil ended at once (${child.exitCode ?? child.signalCode}): ${complaint()}`);
    try {
      await ask();
      return;
    } catch (error) {
      if (performance.now() > deadline) throw new Error(`anvil does not answer: ${complaint()}`, { cause: error });
      // The port opens about 200 ms after the start, without any notification.
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}
