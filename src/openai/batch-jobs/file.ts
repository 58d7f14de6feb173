import type { TaskOwner } from '#tasks';

/** A file of a client: the input of batches, or the results of one. */
export interface StoredFile extends TaskOwner {
  readonly id: string;
  readonly purpose: 'batch' | 'batch_output';
  readonly name: string;
  readonly bytes: number;
  /** The batch whose lines in the state `results` are its content; null for an uploaded file. */
  readonly batch: string | null;
  readonly results: 'completed' | 'failed' | null;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  readonly expiresAt: number;
}

export interface Upload {
  readonly name: string;
  readonly content: AsyncIterable<Uint8Array>;
  /** Called with the bytes that are in memory of it now. Throws GatewayError if there is no room for them. */
  readonly holds?: (bytes: number) => void;
  /**
   * Called when the content has arrived: the rest of the request may follow it. Resolves with the time for which the
   * file is kept, in milliseconds. Rejects with GatewayError if the file is not wanted.
   */
  keepMs(): Promise<number>;
}

/** A part of a list: what follows after the entry `after`. */
export interface PageRequest {
  readonly after: string | null;
  readonly limit: number;
}

interface FilesAsked extends PageRequest {
  readonly order: 'asc' | 'desc';
  /** null for every purpose. */
  readonly purpose: string | null;
}

export interface Listed<T> {
  readonly entries: readonly T[];
  readonly hasMore: boolean;
}

/**
 * Files of clients, in the database, so that every gateway reads them, and one that is killed takes none of them with
 * it. Their content is sealed for their account. Methods reject with the database's error.
 */
export interface StoredFiles {
  /** Rejects with GatewayError `rate_limit_exceeded`, `service_unavailable` if there is no room for another file. */
  admit(owner: TaskOwner): Promise<void>;
  /** Whose share the account uses while it reads: its own, or that of all accounts which never had money. */
  shareOf(account: string): Promise<string>;
  /**
   * Stores an uploaded file while it arrives. Rejects as `admit` does, with `payload_too_large`, and with the errors of
   * the upload; then nothing of it remains.
   */
  write(owner: TaskOwner, upload: Upload): Promise<StoredFile>;
  /** null if there is no such file, or it is not the owner's. */
  find(id: string, owner: TaskOwner): Promise<StoredFile | null>;
  /** null if `after` is no file of the owner. */
  list(owner: TaskOwner, filter: FilesAsked): Promise<Listed<StoredFile> | null>;
  /**
   * Its content in pieces of at most 256 KiB. A piece is made when it is asked for, and about 2 MiB of the file are in
   * memory; `holds` is called with the bytes of what is larger, such as a long result, and may throw.
   */
  read(
    file: Pick<StoredFile, 'id' | 'account' | 'batch' | 'results'>,
    holds?: (bytes: number) => void,
  ): AsyncIterable<Buffer>;
  /** Resolves with false if a batch still reads it. */
  delete(file: StoredFile): Promise<boolean>;
  /** Deletes expired files, at most `limit`; returns how many. */
  sweep(limit: number): Promise<number>;
}

export interface FileLimits {
  readonly fileBytesMax: number;
  readonly accountBytesMax: number;
  readonly accountCountMax: number;
  readonly bytesMax: number;
  /** Of all accounts without money together; null or absent: a quarter of `bytesMax`. */
  readonly freeBytesMax?: number | null;
}
