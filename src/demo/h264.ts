/**
 * Writes H.264 (ITU-T H.264, baseline profile). A picture consists of tiles of 16 × 16 pixels, each of one colour.
 * Every picture is complete without the others (IDR). Every tile is predicted from its neighbours, and only its mean is
 * coded.
 */

/** A colour as luma and two chroma values, 0 to 255 each. */
export type Tile = readonly [y: number, cb: number, cr: number];

/** A picture of tiles, row by row. */
interface Tiles {
  readonly columns: number;
  readonly rows: number;
  readonly tiles: readonly Tile[];
}

/** The quantiser. With 24, one step of a luma coefficient is 40 (8.5.10 and 8.5.11). */
const QP = 24;
const STEP = 40;
/** One step of a chroma coefficient. Its quantiser is also 24 (table 8-15). */
const CHROMA_STEP = 80;
const NAL_SPS = 0x67;
const NAL_PPS = 0x68;
const NAL_IDR = 0x65;

class Bits {
  readonly #bytes: number[] = [];
  #byte = 0;
  #count = 0;

  put(value: number, bits: number): void {
    for (let at = bits - 1; at >= 0; at -= 1) {
      this.#byte = (this.#byte << 1) | ((value >>> at) & 1);
      this.#count += 1;
      if (this.#count === 8) {
        this.#bytes.push(this.#byte);
        this.#byte = 0;
        this.#count = 0;
      }
    }
  }

  /** Writes an unsigned number as Exponential Golomb code (9.1). */
  ue(value: number): void {
    const length = 32 - Math.clz32(value + 1);
    this.put(0, length - 1);
    this.put(value + 1, length);
  }

  se(value: number): void {
    this.ue(value > 0 ? 2 * value - 1 : -2 * value);
  }

  /**
   * Ends the unit. Returns its header and its bytes, with escape bytes so that no start code occurs in them (7.4.1).
   */
  unit(header: number): Buffer {
    this.put(1, 1);
    while (this.#count !== 0) this.put(0, 1);
    const out = [header];
    let zeros = 0;
    for (const byte of this.#bytes) {
      if (zeros === 2 && byte <= 3) {
        out.push(3);
        zeros = 0;
      }
      out.push(byte);
      zeros = byte === 0 ? zeros + 1 : 0;
    }
    return Buffer.from(out);
  }
}

/** The sequence parameter set. `width` and `height` are in pixels and must be even. */
export function sequenceParameters(width: number, height: number): Buffer {
  const bits = new Bits();
  const [columns, rows] = [Math.ceil(width / 16), Math.ceil(height / 16)];
  bits.put(66, 8);
  bits.put(0xc0, 8);
  // Level 4.0, or 5.1 for pictures of more tiles.
  bits.put(columns * rows <= 8192 ? 40 : 51, 8);
  bits.ue(0);
  bits.ue(0);
  // Pictures are shown in the order in which they are stored.
  bits.ue(2);
  bits.ue(1);
  bits.put(0, 1);
  bits.ue(columns - 1);
  bits.ue(rows - 1);
  bits.put(1, 1);
  bits.put(1, 1);
  const [right, bottom] = [(columns * 16 - width) / 2, (rows * 16 - height) / 2];
  bits.put(right + bottom > 0 ? 1 : 0, 1);
  if (right + bottom > 0) for (const crop of [0, right, 0, bottom]) bits.ue(crop);
  bits.put(0, 1);
  return bits.unit(NAL_SPS);
}

export function pictureParameters(): Buffer {
  const bits = new Bits();
  bits.ue(0);
  bits.ue(0);
  bits.put(0, 2);
  bits.ue(0);
  bits.ue(0);
  bits.ue(0);
  bits.put(0, 3);
  bits.se(QP - 26);
  bits.se(0);
  bits.se(0);
  // Pictures may control the deblocking filter. Each picture switches it off.
  bits.put(1, 1);
  bits.put(0, 2);
  return bits.unit(NAL_PPS);
}

/** Encodes one picture. `index` is its place in the film. */
export function picture({ columns, rows, tiles }: Tiles, index: number): Buffer {
  const bits = new Bits();
  bits.ue(0);
  bits.ue(7);
  bits.ue(0);
  bits.put(0, 4);
  bits.ue(index & 1);
  bits.put(0, 2);
  bits.se(0);
  bits.ue(1);
  /** The tiles as a decoder will see them. Later tiles are predicted from them. */
  const shown: Tile[] = [];
  for (let row = 0; row < rows; row += 1)
    for (let column = 0; column < columns; column += 1) {
      const left = column > 0 ? shown.at(-1) : undefined;
      const above = row > 0 ? shown[shown.length - columns] : undefined;
      shown.push(putTile(bits, tiles[row * columns + column]!, left, above));
    }
  return bits.unit(NAL_IDR);
}

/** Codes a tile by its difference from its neighbours' mean. Returns the tile as it is decoded. */
function putTile(bits: Bits, tile: Tile, left: Tile | undefined, above: Tile | undefined): Tile {
  const predicted = [0, 1, 2].map((plane) => predict(plane, left, above));
  const levels = tile.map((value, plane) => levelOf(value - predicted[plane]!, plane));
  const hasChroma = levels[1] !== 0 || levels[2] !== 0;
  // I_16x16_2_0_0 or I_16x16_2_1_0: predicted by the mean, without coefficients of luma beyond it (table 7-11).
  bits.ue(1 + 2 + (hasChroma ? 4 : 0));
  // Chroma is predicted from the left, else from above, so that the tile keeps one colour.
  bits.ue(left ? 1 : above ? 2 : 0);
  bits.se(0);
  putLevel(bits, levels[0]!, false);
  if (hasChroma) for (const level of levels.slice(1)) putLevel(bits, level, true);
  return predicted.map((value, plane) =>
    Math.min(255, Math.max(0, value + shiftOf(levels[plane]!, plane))),
  ) as unknown as Tile;
}

/** Predicts a plane's value in the same way as a decoder. */
function predict(plane: number, left: Tile | undefined, above: Tile | undefined): number {
  if (plane === 0 && left && above) return (left[0] + above[0] + 1) >> 1;
  return (left ?? above)?.[plane] ?? 128;
}

/** The change of a plane's value by a level, as a decoder computes it (8.5.10, 8.5.11). */
const shiftOf = (level: number, plane: number): number => (level * (plane === 0 ? STEP : CHROMA_STEP) + 32) >> 6;

/** The level whose change is nearest to this difference. */
const levelOf = (difference: number, plane: number): number =>
  Math.round((difference * 64) / (plane === 0 ? STEP : CHROMA_STEP));

/** Writes one coefficient. Level 0 is written as the code for an empty block (9.2). */
function putLevel(bits: Bits, level: number, isChroma: boolean): void {
  if (level === 0) return isChroma ? bits.put(0b01, 2) : bits.put(1, 1);
  const size = Math.abs(level);
  if (size === 1) {
    bits.put(1, isChroma ? 1 : 2);
    bits.put(level < 0 ? 1 : 0, 1);
  } else {
    if (isChroma) bits.put(0b000111, 6);
    else bits.put(0b000101, 6);
    putCode(bits, 2 * size - 2 + (level < 0 ? 1 : 0) - 2);
  }
  // total_zeros: no zeros come before this coefficient, because it is the first of its block.
  bits.put(1, 1);
}

function putCode(bits: Bits, code: number): void {
  if (code < 14) bits.put(1, code + 1);
  else if (code < 30) {
    bits.put(1, 15);
    bits.put(code - 14, 4);
  } else {
    bits.put(1, 16);
    bits.put(code - 30, 12);
  }
}
