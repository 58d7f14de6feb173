import { contractSuite } from './contract-suite.ts';
import { gatewayTarget } from './gateway-target.ts';

// In development the gateway knows an address of its own, so agents tell it of their tasks and it need not ask.
const development = { mode: 'development' } as const;

contractSuite(
  gatewayTarget('an agent of both behind the gateway', 'both', { version: '1.0', binding: 'JSONRPC' }, development),
);
// Every day the other files ask agents of one version, which takes the same ways through the gateway.
if (process.env['TOLLGATE_DEEP'] === '1')
  contractSuite(
    gatewayTarget('an agent of both behind the gateway', 'both', { version: '0.3', binding: 'JSONRPC' }, development),
  );
