import type { Row } from '#store';

/** One row of provider_connections: where a provider is connected, or was last. */
export interface PresenceRow {
  readonly provider: string;
  readonly connection: string;
  readonly node: string;
  /** Of two connections of one provider the one with the higher epoch is the newer. */
  readonly epoch: number;
  /** Epoch milliseconds by the clock of the gateway that wrote it; null while connected. */
  readonly leftAt: number | null;
  /** Of the provider's registration; 0 for none. */
  readonly revision: number;
  /** Of the registry's clock at the last change. */
  readonly version: number;
}

/** Reads a row of any statement that returns presence. */
export function presenceOf(row: Row): PresenceRow {
  return {
    provider: row['provider'] as string,
    connection: row['connection'] as string,
    node: row['node'] as string,
    epoch: Number(row['epoch']),
    leftAt: row['left_at'] === null ? null : Number(row['left_at']),
    revision: Number(row['revision']),
    version: Number(row['version']),
  };
}
