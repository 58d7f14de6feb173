/** Facts about the gateway that come with the document. */
interface Boot {
  readonly version: string;
  /** The address that programs call, without a path: `https://gateway.example`. */
  readonly base_url: string;
  readonly mode: 'development' | 'production';
  /** Whether the gateway has `/api/v1/auth/session`. */
  readonly sessions: boolean;
  /** Whether everybody may see `/api/v1/analytics/public`. */
  readonly analytics: boolean;
  /** Names of the host that wallets sign for. The first is the one to use. */
  readonly sign_in_domains: readonly string[];
}

const text = document.getElementById('boot')?.textContent ?? '{}';

export const BOOT: Boot = {
  version: '',
  base_url: location.origin,
  mode: 'production',
  sessions: false,
  analytics: false,
  sign_in_domains: [],
  ...(JSON.parse(text) as Partial<Boot>),
};
