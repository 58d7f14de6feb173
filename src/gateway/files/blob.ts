/** A file that outlives its call. */
export interface Blob {
  /** 32 hex digits: the name of the file. */
  readonly id: string;
  /** Digest that identifies the origin of the content, see sourceOf. */
  readonly source: string;
  readonly account: string;
  /** `writing`: a gateway writes the file and renews its lease (`leaseUntil`). */
  readonly state: 'writing' | 'stored';
  readonly bytes: number;
  /** Media type. */
  readonly type: string;
  /** Hex digits. */
  readonly sha256: string;
  readonly crc32: number;
  /** JSON text of the writer. */
  readonly notes: string;
  readonly holder: string;
  readonly leaseUntil: number;
  readonly createdAt: number;
  readonly expiresAt: number;
}

export interface NewBlob {
  readonly source: string;
  readonly account: string;
  /** Id of the room that was reserved for the file; default none. */
  readonly room?: string;
  /** The size of a file without a room; default the largest that a file may have. */
  readonly bytes?: number;
}

/** Room for the files of a request. */
export interface WantedRoom {
  readonly files: number;
  /** Bytes to reserve for each file; default and maximum: the largest that a file may have. */
  readonly fileBytes?: number;
  /** The files are of a free service, so they use the part of the room that such services share. Default false. */
  readonly isFree?: boolean;
}

export interface NewRoom extends WantedRoom {
  readonly id: string;
  readonly account: string;
  /** Epoch milliseconds. After that the room is free again. */
  readonly expiresAt: number;
}

interface BlobFacts {
  readonly type: string;
  readonly notes: string;
}

export interface BlobWriter {
  /**
   * Resolves when the operating system or the store has the bytes, or they are copied. Rejects with FileTooLarge, with
   * GatewayError if there is no room for the chunk, or with the error of the disk or store.
   */
  write(chunk: Uint8Array): Promise<void>;
  readonly bytes: number;
}

/** A range of a file. A chunk is valid only until the next one is requested, because its memory is reused. */
export interface BlobReader extends AsyncIterable<Uint8Array> {
  destroy(): void;
}

/** Positions of the first and the last byte, both inclusive. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** Files of all gateways of a database. Methods reject with the database's error if it cannot be reached. */
export interface Blobs {
  /**
   * Call it before anything is locked for new files. Rejects with GatewayError if there is no room for them:
   * `rate_limit_exceeded` if the account has used its share, `service_unavailable` if the gateway has no room.
   */
  admit(account: string, room: WantedRoom): Promise<void>;
  /**
   * Reserves room for files, so that other work cannot take it. Reserving the same id again takes
   * no more room and only changes its expiry. Rejects as `admit` does if there is not enough room.
   */
  takeRoom(room: NewRoom): Promise<void>;
  /** Frees the rest of a room. No more files will be written into it. */
  giveRoomBack(id: string): Promise<void>;
  /**
   * Writes the file of a source; `fill` writes the content. Resolves with null if the file is stored already or another
   * call is writing it. Rejects with the error of `fill`, of the disk or of the store; then nothing of the file
   * remains. A file may become larger than what is reserved for it, if there is room. Otherwise the writer rejects as
   * `admit` does.
   */
  write(file: NewBlob, fill: (writer: BlobWriter, lost: AbortSignal) => Promise<BlobFacts>): Promise<Blob | null>;
  /** The files of these sources, stored or still being written, in the order of the sources. */
  find(sources: readonly string[]): Promise<readonly Blob[]>;
  /** Reads a file from its store or from another gateway. Rejects with BlobUnreachable. */
  read(blob: Blob, range: ByteRange): Promise<BlobReader>;
  /** Makes the file expire now, so that it is not found any more. The next sweep frees its room. */
  remove(blob: Blob): Promise<void>;
  /**
   * Removes expired files, rows and rooms, at most `limit` of each kind. Resolves with the highest of these numbers.
   */
  sweep(limit: number): Promise<number>;
}

/** A stored file cannot be read at the moment. */
export class BlobUnreachable extends Error {
  override readonly name = 'BlobUnreachable';
}

/** A file is larger than `media.file_bytes_max`. */
export class FileTooLarge extends Error {
  override readonly name = 'FileTooLarge';
}
