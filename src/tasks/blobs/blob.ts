/** A file that outlives its call. */
export interface Blob {
  /** 32 hex digits, which name the file. */
  readonly id: string;
  /** Digest of what it is the content of, see sourceOf. */
  readonly source: string;
  readonly account: string;
  /** `writing`: somebody writes it until `leaseUntil`, and prolongs that. */
  readonly state: 'writing' | 'stored';
  readonly bytes: number;
  /** Media type. */
  readonly type: string;
  /** Hex digits. */
  readonly sha256: string;
  readonly crc32: number;
  /** Of whoever wrote it; JSON text. */
  readonly notes: string;
  /** The store that has the file. */
  readonly holder: string;
  readonly leaseUntil: number;
  readonly createdAt: number;
  readonly expiresAt: number;
}

export interface NewBlob {
  readonly source: string;
  readonly account: string;
  /** Id of the room that was taken for it; default none. */
  readonly room?: string;
}

/** Room for files that are to come. */
export interface NewRoom {
  readonly id: string;
  readonly account: string;
  readonly files: number;
  /** Epoch milliseconds. It is free again after that. */
  readonly expiresAt: number;
}

/** Facts of a file that its writer knows once it is written. */
interface BlobFacts {
  readonly type: string;
  readonly notes: string;
}

/** A file under way. */
export interface BlobWriter {
  /** Resolves when the bytes are with the system. Rejects with FileTooLarge, or with what the disk says. */
  write(chunk: Uint8Array): Promise<void>;
  readonly bytes: number;
}

/** A range of a file. A chunk is good until the next one is asked for: its memory is used again. */
export interface BlobReader extends AsyncIterable<Uint8Array> {
  destroy(): void;
}

/** Places of the first and the last byte. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** Files of all gateways of a database. Methods reject with the database's error when it cannot be reached. */
export interface Blobs {
  /**
   * Rejects with GatewayError where there is no room for so many more files of the largest size, before anything is
   * locked for them: `rate_limit_exceeded` where the account has as much as it may, `service_unavailable` where the
   * gateway has none.
   */
  admit(account: string, files: number): Promise<void>;
  /**
   * Takes room for files, each as the largest that it may become, so that work for others does not take it. The same
   * room again is no more. Rejects as `admit` where there is not so much.
   */
  takeRoom(room: NewRoom): Promise<void>;
  /** Gives back what is left of a room: no more files come into it. */
  giveRoomBack(id: string): Promise<void>;
  /**
   * Writes the file of a source, which `fill` does. null where it is stored already, or somebody else writes it.
   * Rejects with what `fill` throws, and with what the disk says: nothing of the file is left then.
   */
  write(file: NewBlob, fill: (writer: BlobWriter, lost: AbortSignal) => Promise<BlobFacts>): Promise<Blob | null>;
  /** The files of these sources that are there or are written, in the order of the sources. */
  find(sources: readonly string[]): Promise<readonly Blob[]>;
  /** Reads a file from wherever it is. Rejects with BlobUnreachable. */
  read(blob: Blob, range: ByteRange): Promise<BlobReader>;
  /** Nobody can read the file any more. It makes room at the next sweep. */
  remove(blob: Blob): Promise<void>;
  /** Removes what is past its time, at most `limit` of each kind; resolves with the highest number. */
  sweep(limit: number): Promise<number>;
}

/** A file that is stored cannot be read now. */
export class BlobUnreachable extends Error {
  override readonly name = 'BlobUnreachable';
}

/** A file is larger than `media.file_bytes_max`. */
export class FileTooLarge extends Error {
  override readonly name = 'FileTooLarge';
}
