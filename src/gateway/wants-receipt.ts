interface ReceiptRequest {
  readonly receipts: 'always' | 'on-request';
  /** Request headers, lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Whether the reply includes a signed receipt. */
export function wantsReceipt(stream: boolean, { receipts, headers }: ReceiptRequest): boolean {
  return (receipts === 'always' && !stream) || asksForReceipt(headers);
}

/** The request header `x-receipt: 1` asks for a signed receipt. Streams need it even if `receipts` is `always`. */
function asksForReceipt(headers: ReceiptRequest['headers']): boolean {
  const asked = headers['x-receipt'];
  return asked === '1' || asked === 'true';
}
