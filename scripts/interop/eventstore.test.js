import * as lib from "@eventstore/db-client";

import { suite } from "./suite.js";

suite("@eventstore/db-client", lib, lib.EventStoreDBClient, (expectedRevision) => ({ expectedRevision }));
