import { contractSuite } from './contract-suite.ts';
import { gatewayTarget } from './gateway-target.ts';

const deviates = {
  'GATE-04':
    "0.3 has no wrapper, so what stands beside the task in it has no place ('wrapper' in docs/reference/mappings-a2a.md)",
};

contractSuite(
  gatewayTarget('an agent of 0.3 behind the gateway', '0.3', { version: '1.0', binding: 'JSONRPC', deviates }),
);
contractSuite(
  gatewayTarget('an agent of 0.3 behind the gateway', '0.3', { version: '1.0', binding: 'HTTP+JSON', deviates }),
);
contractSuite(gatewayTarget('an agent of 1.0 behind the gateway', '1.0', { version: '0.3', binding: 'JSONRPC' }));
