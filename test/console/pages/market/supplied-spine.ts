import { inject, onTestFinished } from 'vitest';
import { openDatabase } from '#store';
import type { ModelService } from '../../../../src/server/config/service.ts';
import { offerOfTunnel } from '../../../../src/gateway/network/registry/listing.ts';
import type { ProxyConnection } from '../../../../src/gateway/network/registry/presence.ts';
import { freshDatabase } from '../../../support/fresh-database.ts';
import { startSpine, UNHURRIED, type Spine } from '../../../support/spine.ts';
import { evmWallet, SIGN_IN_TOML, signInHeaders, solanaWallet, type TestWallet } from '../../../support/wallets.ts';
import { startNode, until } from '../../../gateway/network/registry/registry-world.ts';

/** A provider with a wallet whose model is registered and listed. */
export interface Supplier {
  readonly wallet: TestWallet;
  readonly id: string;
  readonly service: ModelService;
  /** One of its own pages, as its wallet sees it. */
  page<T = Record<string, unknown>>(path: string): Promise<T>;
  leave(): Promise<void>;
}

/**
 * A gateway, and providers that are connected to another one of the same database. Their models are listed as
 * registered and served by the test provider at its address: what the pages say depends on the calls alone, not on
 * the way that they take.
 */
export async function startSupplied(
  toml = '',
): Promise<{ readonly spine: Spine; supply(service: ModelService, chain?: 'solana' | 'evm'): Promise<Supplier> }> {
  const { url: databaseUrl, drop } = await freshDatabase(inject('postgresUrl'));
  onTestFinished(drop);
  const spine = await startSpine({ databaseUrl, toml: `${UNHURRIED}\n${SIGN_IN_TOML}\n${toml}` });
  onTestFinished(() => spine.stop());
  const database = await openDatabase({ url: databaseUrl, dataDir: '' });
  onTestFinished(() => database.close());
  const { registry } = await startNode(database);
  let connections = 0;

  return {
    spine,
    async supply(service, chain = 'solana') {
      const wallet = chain === 'solana' ? solanaWallet() : evmWallet();
      const id = wallet.providerId;
      const connection: ProxyConnection = {
        id: `supplier-${connections++}`,
        provider: id,
        account: wallet.account,
        network: 'g7f0000',
      };
      await registry.join(connection);
      await registry.register(connection, [service]);
      const offer = offerOfTunnel({ service, createdAt: Date.now() }, id);
      const { catalog } = spine.app;
      await until(() => catalog.offers().some((one) => one.id === offer.id));
      catalog.replace(`address of ${id}`, [
        { ...offer, endpoint: { kind: 'direct', baseUrl: spine.provider.url, headers: {} } },
      ]);
      return {
        wallet,
        id,
        service,
        async page<T>(path: string) {
          const response = await fetch(`${spine.url}/provider${path}`, { headers: await signInHeaders(wallet) });
          if (response.status !== 200)
            throw new Error(`/provider${path} answered ${response.status}: ${await response.text()}`);
          return (await response.json()) as T;
        },
        async leave() {
          catalog.replace(`address of ${id}`, []);
          await registry.leave(connection);
        },
      };
    },
  };
}
