import type { ReactNode } from 'react';
import { Heading } from '../../ui/heading.tsx';

export default function ProviderPage(): ReactNode {
  return <Heading title="Provider" lead="One provider." />;
}
