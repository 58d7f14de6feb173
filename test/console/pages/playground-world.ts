import { openBrowser, type TestBrowser, type Visitor } from '../../support/browser.ts';
import { startGateway, type Gateway } from '../../support/gateway.ts';

/** The gateway of `npm start` with its demo, and a browser. The local developer is signed in by itself. */
export interface PlaygroundWorld {
  readonly gateway: Gateway;
  /** A visitor at the playground with this service. */
  visit(service: string, options?: Partial<Parameters<TestBrowser['visit']>[0]>): Promise<Visitor>;
  /** The record of the call that the receipt on the page names. Opens the receipt. */
  recordOf(visitor: Visitor): Promise<LedgerRecord>;
  /** Micro-USD. */
  balance(): Promise<number>;
  stop(): Promise<void>;
}

export interface LedgerRecord {
  readonly id: string;
  readonly state: string;
  readonly service: string;
  readonly cost_micro_usdc: number;
  readonly run_cost: number;
  readonly entries: readonly { readonly type: string; readonly amount_micro_usdc: number }[];
  readonly children: readonly LedgerRecord[];
}

/** On a machine that is busy with other tests. */
const PATIENCE_MS = 100_000;

/** `blocks`: services beside those of the demo. */
export async function startPlayground(blocks = ''): Promise<PlaygroundWorld> {
  const [gateway, browser] = await Promise.all([
    startGateway({
      command: 'start',
      toml: `[billing]\ndrain_ms = 300\n${blocks}`,
      env: { TEST_UPSTREAM_KEY: 'upstream' },
      timeoutMs: PATIENCE_MS,
    }),
    openBrowser(),
  ]);
  const read = async <T>(path: string): Promise<T> => {
    const answer = await fetch(`${gateway.baseUrl}/api/v1${path}`, {
      headers: { authorization: `Bearer ${gateway.apiKey!}` },
    });
    return (await answer.json()) as T;
  };
  return {
    gateway,
    async visit(service, options = {}) {
      const visitor = await browser.visit({ origin: gateway.baseUrl, ...options });
      await visitor.page.goto(`/playground?m=${encodeURIComponent(service)}`);
      await visitor.page.getByText('Balance').waitFor();
      return visitor;
    },
    async recordOf({ page }) {
      await page.getByRole('button', { name: 'Receipt' }).last().click();
      const id = await page.getByRole('link', { name: /^gen-/ }).last().textContent();
      return (await read<{ data: LedgerRecord }>(`/generation?id=${id}`)).data;
    },
    balance: async () => (await read<{ balance_micro_usdc: number }>('/session/balance')).balance_micro_usdc,
    async stop() {
      await browser.close();
      await gateway.stop();
    },
  };
}

/** The USD that a text of the page says, in micro-USD: `$0.003029 charged`. */
export function microUsdIn(text: string | null): number {
  const usd = /\$([\d.,]+)/.exec(text ?? '')?.[1];
  if (usd === undefined) throw new Error(`there is no amount in ${text}`);
  return Math.round(Number(usd.replaceAll(',', '')) * 1_000_000);
}
