import { ChainUnavailable, type Chain, type ChainSetup, type SnapshotRows } from './chain.ts';
import { createHandover } from './handover.ts';
import type { Reserves } from './books.ts';
import type { Treasury } from './treasury.ts';

export interface OpenNetworksOptions {
  readonly setups: readonly ChainSetup[];
  readonly snapshotsOf: (network: string) => SnapshotRows;
  readonly createTreasury: (chain: Chain) => Treasury;
  /** Called when a network begins or stops to answer; `error` is the reason. */
  readonly onChange: (network: string, answers: boolean, error: unknown) => void;
  readonly signal: AbortSignal;
}

/**
 * The comparison of a network's books with its treasury. `reserves` is null if the network does not report the balance.
 */
export interface NetworkAudit {
  readonly network: string;
  readonly reserves: Reserves | null;
  readonly error: unknown;
}

interface OpenNetworks {
  chain(network: string): Chain | null;
  /**
   * Opens all networks. Rejects with Error if one has a wrong setup. A network that cannot be reached is left to
   * `watch`.
   */
  open(): Promise<void>;
  /** Opens the network if it is not open yet, and books its incoming transfers. */
  watch(network: string): Promise<void>;
  /** Compares the books of an open network with its treasury. */
  compare(network: string): Promise<void>;
  /** The same, with the result. Rejects with ChainUnavailable, also if the network is not open. */
  compareNow(network: string): Promise<Reserves | null>;
  audit(): Promise<readonly NetworkAudit[]>;
  /**
   * Opens further networks, which become active with `commit`. Rejects with Error and opens none if one has a wrong
   * setup.
   */
  prepare(setups: readonly ChainSetup[]): Promise<{ commit(): void }>;
  close(): void;
}

interface OpenNetwork {
  readonly chain: Chain;
  readonly treasury: Treasury;
}

export function createOpenNetworks(options: OpenNetworksOptions): OpenNetworks {
  const { createTreasury, onChange, signal } = options;
  const setups = new Map(options.setups.map((setup) => [setup.network, setup]));
  const networks = new Map<string, OpenNetwork>();
  const answering = new Map<string, boolean>();

  const openOne = async (bare: ChainSetup): Promise<OpenNetwork> => {
    const setup = { ...bare, snapshots: options.snapshotsOf(bare.network) };
    const createChain = setup.network.startsWith('eip155:') ? await evm() : await solana();
    const previous =
      setup.previousKey == null ? null : createChain({ ...setup, treasuryKey: setup.previousKey, previousKey: null });
    const chain = previous === null ? createChain(setup) : createHandover(createChain(setup), previous);
    try {
      await chain.open();
      const treasury = createTreasury(chain);
      await treasury.open();
      return { chain, treasury };
    } catch (error) {
      chain.close();
      throw error;
    }
  };

  const openKnown = async (setup: ChainSetup): Promise<OpenNetwork> => {
    const one = await openOne(setup);
    networks.set(setup.network, one);
    return one;
  };

  const noteAnswer = (network: string, answers: boolean, error: unknown): void => {
    // A first answer is the expected case and is not reported.
    if ((answering.get(network) ?? true) !== answers) onChange(network, answers, error);
    answering.set(network, answers);
  };

  /** Does the work and records whether the network answers. */
  const asking = async (network: string, work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
      noteAnswer(network, true, null);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof ChainUnavailable)) throw error;
      noteAnswer(network, false, error);
    }
  };

  const compareNow = async (network: string): Promise<Reserves | null> => {
    const treasury = networks.get(network)?.treasury;
    if (!treasury) throw new ChainUnavailable(`${network} does not answer`);
    return treasury.compare();
  };

  const close = () => {
    for (const { chain } of networks.values()) chain.close();
  };

  return {
    chain: (network) => networks.get(network)?.chain ?? null,
    async open() {
      const openings = await Promise.allSettled(
        [...setups.values()].map((setup) => asking(setup.network, () => openKnown(setup))),
      );
      const failed = openings.find((opening) => opening.status === 'rejected');
      if (!failed) return;
      close();
      throw failed.reason;
    },
    watch: (network) =>
      asking(network, async () => {
        const { treasury } = networks.get(network) ?? (await openKnown(setups.get(network)!));
        await treasury.watch();
      }),
    async compare(network) {
      const { treasury } = networks.get(network) ?? {};
      if (treasury) await asking(network, treasury.compare);
    },
    compareNow,
    audit: () =>
      Promise.all(
        [...setups.keys()].map(async (network) => {
          try {
            return { network, reserves: await compareNow(network), error: null };
          } catch (error) {
            return { network, reserves: null, error };
          }
        }),
      ),
    async prepare(more) {
      const prepared = new Map<string, OpenNetwork>();
      const openings = await Promise.allSettled(
        more.map((setup) => asking(setup.network, async () => void prepared.set(setup.network, await openOne(setup)))),
      );
      const failed = openings.find((opening) => opening.status === 'rejected');
      if (failed) {
        for (const { chain } of prepared.values()) chain.close();
        throw failed.reason;
      }
      return {
        commit() {
          for (const setup of more) setups.set(setup.network, setup);
          for (const [network, one] of prepared) networks.set(network, one);
        },
      };
    },
    close,
  };
}

/**
 * The libraries of a family of chains take long to load, so they are loaded only if one of its chains is configured.
 */
const evm = async () => (await import('./evm/evm-chain.ts')).createEvmChain;
const solana = async () => (await import('./solana/solana-chain.ts')).createSolanaChain;
