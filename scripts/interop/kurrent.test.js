import * as lib from "@kurrent/kurrentdb-client";

import { suite } from "./suite.js";

suite("@kurrent/kurrentdb-client", lib, lib.KurrentDBClient, (streamState) => ({ streamState }));
