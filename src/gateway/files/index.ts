export { type BlobFiles, openBlobFiles } from './blob-files.ts';
export { type Blob, BlobUnreachable, type BlobWriter, type Blobs, FileTooLarge, type WantedRoom } from './blob.ts';
export { createBlobs, removeOrphans, sourceOf } from './create-blobs.ts';
export { createFarBlobs, giveFile, tellHolder } from './far-blobs.ts';
export { type Around, type KeptReplies, createKeptReplies } from './kept-replies.ts';
export { type BodyPiece, pieceLength, rangeOf, writePieces } from './pieces.ts';
export { openS3Files } from './s3-files.ts';
