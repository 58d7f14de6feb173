/**
 * Why a stranger's URL gave no reply. The message names no address. `refused`: we would not call it, and will not
 * later.
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
