/** Facts about the gateway that come with the document. */
interface Boot {
  readonly version: string;
  /** The address that programs call, without a path: `https://gateway.example`. */
  readonly base_url: string;
  readonly mode: 'development' | 'production';
  /** Whether everybody may see `/api/v1/analytics/public`. */
  readonly analytics: boolean;
  /** Paths that lead to another site. */
  readonly elsewhere: readonly string[];
  /** Names of the host that wallets sign for. The first is the one to use. */
  readonly sign_in_domains: readonly string[];
}

const boot = JSON.parse(document.getElementById('boot')?.textContent ?? '{}') as Partial<Boot> & {
  readonly answers?: Readonly<Record<string, unknown>>;
};

export const BOOT: Boot = {
  version: '',
  base_url: location.origin,
  mode: 'production',
  analytics: false,
  elsewhere: [],
  sign_in_domains: [],
  ...boot,
};

/** Answers of the API are shown without being asked for again for so long. */
export const FRESH_MS = 30_000;

/** The answer of the API that came with the document, while it is fresh; undefined for none. */
export const answerOfDocument = (path: string): unknown =>
  performance.now() < FRESH_MS ? boot.answers?.[path] : undefined;
