# A shop that gets stuck as shops do: a purchase locks the stock and then the accounts, a refund locks them the other way round.
STOCK = { "tea" => 1_000_000 }
ACCOUNTS = Hash.new(0)
STOCK_LOCK = Mutex.new
ACCOUNTS_LOCK = Mutex.new

class Shop
  SAVE_S = 0.02 # how long a database takes to save a change

  def call(env)
    customer = env["QUERY_STRING"]
    case env["PATH_INFO"]
    when "/buy" then buy(customer)
    when "/refund" then refund(customer)
    end
    [200, { "Content-Type" => "text/plain" }, ["#{STOCK["tea"]}\n"]]
  end

  def buy(customer)
    STOCK_LOCK.synchronize do
      save { STOCK["tea"] -= 1 }
      ACCOUNTS_LOCK.synchronize { save { ACCOUNTS[customer] -= 5 } }
    end
  end

  def refund(customer)
    ACCOUNTS_LOCK.synchronize do
      save { ACCOUNTS[customer] += 5 }
      STOCK_LOCK.synchronize { save { STOCK["tea"] += 1 } }
    end
  end

  def save
    yield
    sleep SAVE_S
  end
end

run Shop.new
