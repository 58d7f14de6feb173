import type { Row } from '#store';

/** One row of provider_connections: the current or last connection of a provider. */
export interface PresenceRow {
  readonly provider: string;
  readonly connection: string;
  readonly node: string;
  /** The newer of two connections of a provider has the higher epoch. */
  readonly epoch: number;
  /** Epoch milliseconds by the clock of the gateway that wrote it; null while connected. */
  readonly leftAt: number | null;
  /** The revision of the provider's registration. 0 without one. */
  readonly revision: number;
  /** The version of the registry's clock at the last change of the row. */
  readonly version: number;
}

/** Parses a row of any statement that returns presence. */
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
