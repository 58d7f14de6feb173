/**
 * An untrusted URL gave no reply. The message names no address. `refused`: the gateway does not call this URL, so a
 * retry is useless.
 */
export class OutboundFailure extends Error {
  override readonly name = 'OutboundFailure';
  readonly refused: boolean;
  constructor(
    message: string,
    { refused = false, cause }: { readonly refused?: boolean; readonly cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.refused = refused;
  }
}
