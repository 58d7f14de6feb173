import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Hex } from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import type { EvmToken } from './evm-token.ts';

/**
 * The behaviour of a facilitator. `settles`: correct. `hangs-before`, `hangs-after`: never answers, and hangs before or
 * after it has sent the transaction. `500-before`, `500-after`: answers 500 before or after sending. `lies`: claims to
 * have settled. `denies`: settles but claims that it failed. `wrong-amount`: sends another small payment of its own and
 * names that transaction.
 */
export type FacilitatorMode =
  | 'settles'
  | 'hangs-before'
  | 'hangs-after'
  | '500-before'
  | '500-after'
  | 'lies'
  | 'denies'
  | 'wrong-amount';

/** An x402 facilitator for one token. It settles by executing the authorization. */
export interface TestFacilitator {
  readonly url: URL;
  mode: FacilitatorMode;
  /** Number of payments that it was asked to settle. */
  readonly asked: number;
  stop(): Promise<void>;
}

interface Ask {
  readonly paymentPayload: {
    readonly payload: { readonly authorization: Readonly<Record<string, string>>; readonly signature: Hex };
  };
  readonly paymentRequirements: { readonly network: string };
}

export async function startFacilitator(token: EvmToken, purse: PrivateKeyAccount): Promise<TestFacilitator> {
  let asked = 0;
  const hanging = new Set<ServerResponse>();
  const state: { mode: FacilitatorMode } = { mode: 'settles' };
  const server = createServer((request, response) => {
    const serve = async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const { paymentPayload, paymentRequirements } = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Ask;
      const answer = (status: number, body: unknown) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
      const { authorization } = paymentPayload.payload;
      asked += 1;
      const { network } = paymentRequirements;
      const settled = (transaction: string) => ({ success: true, transaction, network, payer: authorization['from'] });
      const settle = () => token.carryOut(paymentPayload.payload);
      switch (state.mode) {
        case 'settles':
          return answer(200, settled(await settle()));
        case 'hangs-before':
          return hanging.add(response);
        case 'hangs-after':
          await settle();
          return hanging.add(response);
        case '500-before':
          return answer(500, { error: 'internal' });
        case '500-after':
          await settle();
          return answer(500, { error: 'internal' });
        case 'lies':
          return answer(200, settled(`0x${'22'.repeat(32)}`));
        case 'wrong-amount':
          return answer(200, settled(await token.transfer(purse, authorization['to'] as Hex, 1n)));
        case 'denies':
          await settle();
          return answer(200, { success: false, errorReason: 'unexpected_settle_error', transaction: '', network });
      }
    };
    serve().catch(() => response.writeHead(500).end('{}'));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    get mode() {
      return state.mode;
    },
    set mode(mode) {
      state.mode = mode;
      if (mode === 'settles') {
        for (const response of hanging) response.destroy();
        hanging.clear();
      }
    },
    get asked() {
      return asked;
    },
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
