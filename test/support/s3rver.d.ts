declare module 's3rver' {
  interface Options {
    readonly address?: string;
    readonly port?: number;
    readonly directory?: string;
    readonly silent?: boolean;
    readonly configureBuckets?: readonly { readonly name: string }[];
  }
  export default class S3rver {
    constructor(options: Options);
    run(): Promise<{ readonly port: number }>;
    close(): Promise<void>;
    middleware(...layers: unknown[]): void;
  }
}
