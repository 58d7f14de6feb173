import { toPng } from '../../../../src/program/demo/png.ts';

/** The picture that vendors of images make. */
export const PICTURE = toPng({ width: 64, height: 64, pixels: new Uint8Array(64 * 64 * 4).fill(200) });
