interface ReceiptAsked {
  readonly receipts: 'always' | 'on-request';
  /** Request headers, lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Whether a signed receipt goes with the reply. */
export function wantsReceipt(stream: boolean, { receipts, headers }: ReceiptAsked): boolean {
  return (receipts === 'always' && !stream) || asksForReceipt(headers);
}

/** A request header `x-receipt: 1` asks for a signed receipt where they are not always given. */
function asksForReceipt(headers: ReceiptAsked['headers']): boolean {
  const asked = headers['x-receipt'];
  return asked === '1' || asked === 'true';
}
